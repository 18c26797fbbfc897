package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.kernel.Kernels;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** In JVMs of their own, since this one has the module from its start. */
final class VectorModuleTest {
    @Test
    void aJvmThatStartedWithoutTheModuleComputesWithVectors() throws Exception {
        assertThat(kernels("--add-exports=java.base/jdk.internal.module=ALL-UNNAMED"))
                .startsWith("vector-");
    }

    @Test
    void aJvmThatStartedWithTheModuleKeepsIt() throws Exception {
        assertThat(kernels("--add-modules=jdk.incubator.vector")).startsWith("vector-");
    }

    @Test
    void withoutTheExportItComputesWithoutVectors() throws Exception {
        assertThat(kernels()).isEqualTo("scalar");
    }

    private static String kernels(String... options) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of(options));
        command.addAll(
                List.of(
                        "-cp",
                        System.getProperty("java.class.path"),
                        VectorModuleTest.class.getName()));
        Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (var output = process.getInputStream()) {
            return new String(output.readAllBytes(), StandardCharsets.UTF_8).strip();
        }
    }

    /** The child. */
    public static void main(String... arguments) {
        VectorModule.load();
        System.out.println(Kernels.best().name());
    }
}
