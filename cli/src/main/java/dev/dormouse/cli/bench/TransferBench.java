package dev.dormouse.cli.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import dev.dormouse.cli.bench.cuda.DeviceTransferBench;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.Progress;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse bench transfer}: how fast blocks come from another process. */
@Command(
        name = "transfer",
        mixinStandardHelpOptions = true,
        description = {
            "Rates at which KV blocks come from another process of this host, by transport.",
            "",
            "Blocks are read in random order into random places. Each round also copies the same blocks plainly from a mapping of the"
                    + " same memory; a rate is given with its ratio to that, by the wall clock and by the reading process's processor time."
                    + " The best of all rounds counts, as in STREAM; in three first ones, which do not count, every byte is compared.",
            "",
            "Of cuda the plain copy is cuMemcpyDtoD, or cuMemcpyPeer for a reader on another GPU, and nixl is measured up to 64 MiB:"
                    + " UCX cannot open handles of memory that can be unmapped."
        })
final class TransferBench implements Callable<Integer> {
    private static final long MIB = 1 << 20;

    @Spec private CommandSpec spec;

    @Option(
            names = "--transport",
            paramLabel = "TRANSPORT",
            split = ",",
            defaultValue = "local,nixl",
            description = "What is measured (default: ${DEFAULT-VALUE}).")
    private List<String> transports = List.of();

    @Option(
            names = "--sizes-mib",
            paramLabel = "MIB",
            split = ",",
            description = "Bytes of all blocks (default: 64,256,1024; of cuda 64,1024,8192).")
    private List<Integer> sizesMiB = List.of();

    @Option(
            names = "--blocks-kib",
            paramLabel = "KIB",
            split = ",",
            description = "Bytes of each block (default: 8,16,64,256,1024; of cuda without 8).")
    private List<Integer> blocksKiB = List.of();

    @Option(
            names = "--rounds",
            paramLabel = "N",
            description = "Counted rounds (default: 5; of cuda 7).")
    private @Nullable Integer chosenRounds;

    private int rounds;

    @Option(
            names = "--device",
            paramLabel = "DEVICE",
            defaultValue = "host",
            description =
                    "Whose memory: host, or cuda for the first GPU's (default: ${DEFAULT-VALUE}).")
    private Device device = Device.HOST;

    @Option(
            names = "--reader-device",
            paramLabel = "N",
            split = ",",
            description =
                    "GPUs of readers, of cuda; the memory is on GPU 0 (default: 0, and 1 where it reaches that).")
    private List<Integer> readerDevices = List.of();

    @Option(names = "--json", paramLabel = "FILE", description = "Write the figures as JSON, too.")
    private @Nullable Path json;

    @Override
    public Integer call() throws IOException {
        setDefaults();
        requireOptions();
        Map<String, Object> report = device == Device.CUDA ? cuda() : host();
        if (json != null) {
            Json.write(json, report);
        }
        return 0;
    }

    private void setDefaults() {
        boolean cuda = device == Device.CUDA;
        if (sizesMiB.isEmpty()) {
            sizesMiB = cuda ? List.of(64, 1024, 8192) : List.of(64, 256, 1024);
        }
        if (blocksKiB.isEmpty()) {
            blocksKiB = cuda ? List.of(16, 64, 256, 1024) : List.of(8, 16, 64, 256, 1024);
        }
        rounds = chosenRounds == null ? (cuda ? 7 : 5) : chosenRounds;
    }

    private Map<String, Object> cuda() {
        DeviceTransferBench.Report report =
                new DeviceTransferBench(new Progress(System.err))
                        .run(
                                new DeviceTransferBench.Plan(
                                        transports,
                                        readerDevices.isEmpty()
                                                ? DeviceTransferBench.readerDevices()
                                                : readerDevices,
                                        sizesMiB.stream().map(size -> size * MIB).toList(),
                                        blocksKiB.stream().map(block -> block * 1024L).toList(),
                                        rounds));
        DeviceTransferBench.print(report, spec.commandLine().getOut());
        return Map.of(
                "device",
                "cuda",
                "rounds",
                rounds,
                "rates",
                report.rates(),
                "notes",
                report.notes());
    }

    private Map<String, Object> host() throws IOException {
        int largestMiB = sizesMiB.stream().mapToInt(Integer::intValue).max().orElseThrow();
        Progress progress = new Progress(System.err);
        Path logs = Files.createTempDirectory("dormouse-bench");
        progress.say("starting the process that is read from; its log is in " + logs);
        List<TransferRate> rates = new ArrayList<>();
        try (ChildProcess child =
                        ChildProcess.start(
                                "owner",
                                logs,
                                List.of(
                                        "bench",
                                        "transfer-owner",
                                        "--mib",
                                        Integer.toString(largestMiB)));
                TransferReader reader =
                        new TransferReader(
                                largestMiB * MIB, child.pid(), told(child), transports)) {
            for (int size : sizesMiB) {
                for (int block : blocksKiB) {
                    progress.say(size + " MiB in blocks of " + block + " KiB");
                    rates.addAll(reader.measure(size * MIB, block * 1024L, rounds));
                }
            }
        }
        print(rates);
        return Map.of("device", "host", "rounds", rounds, "rates", rates);
    }

    private static TransferOwner.Told told(ChildProcess child) {
        try {
            return Json.MAPPER.readValue(
                    child.await(TransferOwner.READY), TransferOwner.Told.class);
        } catch (JsonProcessingException e) {
            throw new FleetException("the other process does not say where its memory is", e);
        }
    }

    private void requireOptions() {
        for (String transport : transports) {
            require(
                    TransferSide.NAMES.contains(transport),
                    "--transport is " + transport + ", but must be of " + TransferSide.NAMES);
        }
        sizesMiB.forEach(
                size ->
                        require(
                                size > 0 && size <= 1 << 16,
                                "--sizes-mib has " + size + ", but must be 1 to 65536"));
        blocksKiB.forEach(
                block ->
                        require(
                                block > 0 && sizesMiB.stream().allMatch(s -> s * 1024L >= block),
                                "--blocks-kib has " + block + ", but must be 1 to a size"));
        require(rounds > 0, "--rounds is " + rounds + ", but must be at least 1");
    }

    private void require(boolean condition, String message) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), message);
        }
    }

    private void print(List<TransferRate> rates) {
        PrintWriter out = spec.commandLine().getOut();
        out.printf(
                "%-10s %8s %9s %9s %9s %7s %9s %9s %9s%n",
                "transport", "size", "block", "rate", "memcpy", "ratio", "rate", "memcpy", "ratio");
        out.printf(
                "%-10s %8s %9s %9s %9s %7s %9s %9s %9s%n",
                "", "MiB", "KiB", "GB/s", "GB/s", "", "GB/CPU s", "GB/CPU s", "by CPU");
        for (TransferRate rate : rates) {
            out.printf(
                    Locale.ROOT,
                    "%-10s %8d %9d %9.2f %9.2f %7.2f %9.2f %9.2f %9.2f%n",
                    rate.transport(),
                    rate.bytes() / MIB,
                    rate.blockBytes() >> 10,
                    rate.gigabytesPerSecond(),
                    rate.memcpyGigabytesPerSecond(),
                    rate.ratio(),
                    rate.gigabytesPerCpuSecond(),
                    rate.memcpyGigabytesPerCpuSecond(),
                    rate.cpuRatio());
        }
        out.flush();
    }
}
