package dev.dormouse.cli.doctor;

import java.util.Optional;
import java.util.stream.Collectors;

/** NVIDIA GPUs, and whether UCX could reach their memory. */
final class GpuCheck {
    private static final String TOPIC = "GPU";

    private GpuCheck() {}

    static Finding finding(Machine machine, NixlLibraries nixl) {
        Optional<String> listed =
                machine.output(
                                "nvidia-smi",
                                "--query-gpu=name,memory.total",
                                "--format=csv,noheader")
                        .filter(text -> !text.isBlank());
        if (listed.isEmpty() && !machine.exists("/dev/nvidia0")) {
            return Finding.ok(TOPIC, "none; engines run on the host");
        }
        String text =
                listed.map(
                                gpus ->
                                        gpus.lines()
                                                .map(String::strip)
                                                .collect(Collectors.joining("; ")))
                        .orElse("/dev/nvidia0, but nvidia-smi gives no answer");
        Optional<SharedLibrary> module =
                nixl.ucx()
                        .flatMap(ucx -> ucx.path("libuct"))
                        .map(uct -> uct.substring(0, uct.lastIndexOf('/')) + "/ucx")
                        .flatMap(folder -> cudaModule(machine, folder));
        return module.filter(library -> !library.missing().isEmpty())
                .map(
                        library ->
                                Finding.warn(
                                        TOPIC,
                                        text + "; UCX lacks " + library.missingText(),
                                        "put them on LD_LIBRARY_PATH (libcudart.so.12 is in PyPI's"
                                                + " nvidia-cuda-runtime-cu12)"))
                .orElseGet(() -> Finding.ok(TOPIC, text));
    }

    /** UCX's memory hooks for CUDA, the module that needs the CUDA runtime. */
    private static Optional<SharedLibrary> cudaModule(Machine machine, String folder) {
        return machine.names(folder).stream()
                .filter(name -> name.startsWith("libucm_cuda.so"))
                .findFirst()
                .flatMap(name -> SharedLibrary.inspect(machine, folder + "/" + name));
    }
}
