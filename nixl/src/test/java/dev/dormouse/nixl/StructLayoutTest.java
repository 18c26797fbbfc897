package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The layouts in Java against what the C compiler makes of the structs of {@code wrapper.h}. */
class StructLayoutTest {
    private static final String PROGRAM =
            """
            #include <stdbool.h>
            #include <stddef.h>
            #include <stdint.h>
            #include <stdio.h>
            typedef enum { NONE, STRICT, RW } sync_t;
            struct config {
                bool enable_prog_thread;
                bool enable_listen_thread;
                int listen_port;
                sync_t thread_sync;
                unsigned int num_workers;
                uint64_t pthr_delay_us;
                uint64_t lthr_delay_us;
                bool capture_telemetry;
            };
            struct telemetry {
                uint64_t start_time_us;
                uint64_t post_duration_us;
                uint64_t xfer_duration_us;
                uint64_t total_bytes;
                uint64_t desc_count;
            };
            #define O(s, f) printf(#s "." #f "=%zu\\n", offsetof(struct s, f))
            int main(void) {
                printf("config=%zu\\n", sizeof(struct config));
                O(config, enable_prog_thread);
                O(config, enable_listen_thread);
                O(config, listen_port);
                O(config, thread_sync);
                O(config, num_workers);
                O(config, pthr_delay_us);
                O(config, lthr_delay_us);
                O(config, capture_telemetry);
                printf("telemetry=%zu\\n", sizeof(struct telemetry));
                O(telemetry, start_time_us);
                O(telemetry, post_duration_us);
                O(telemetry, xfer_duration_us);
                O(telemetry, total_bytes);
                O(telemetry, desc_count);
            }
            """;

    @Test
    void layoutsAgreeWithTheCompiler(@TempDir Path folder)
            throws IOException, InterruptedException {
        Path source = folder.resolve("layout.c");
        Path binary = folder.resolve("layout");
        Files.writeString(source, PROGRAM);
        Assumptions.assumeTrue(
                compiles(List.of("cc", "-o", binary.toString(), source.toString())),
                "no C compiler");

        Process process = new ProcessBuilder(binary.toString()).start();
        String printed =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

        assertThat(
                        describe("config", NativeAgent.CONFIG)
                                + describe("telemetry", NativeTransfers.TELEMETRY))
                .isEqualTo(printed);
    }

    private static boolean compiles(List<String> command) throws InterruptedException {
        try {
            return new ProcessBuilder(command).inheritIO().start().waitFor() == 0;
        } catch (IOException e) {
            return false;
        }
    }

    private static String describe(String name, StructLayout layout) {
        StringBuilder text = new StringBuilder(name + "=" + layout.byteSize() + "\n");
        for (MemoryLayout member : layout.memberLayouts()) {
            member.name()
                    .ifPresent(
                            field ->
                                    text.append(name)
                                            .append('.')
                                            .append(field)
                                            .append('=')
                                            .append(
                                                    layout.byteOffset(
                                                            MemoryLayout.PathElement.groupElement(
                                                                    field)))
                                            .append('\n'));
        }
        return text.toString();
    }
}
