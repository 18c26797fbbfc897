package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Engines of a tiny model as processes that choose their way by themselves. */
final class SameHostEndToEndTest {
    private static final String PROMPT =
            "In the evening the lamps along the harbour were lit one by one, and then";

    @TempDir private Path logs;

    @Test
    void enginesOfOneHostMapEachOtherAndGiveBackWhatSleeps() {
        Natives.nixlDirectory();
        Path model = logs.resolve("tiny");
        TinyModelFolder.write(model);
        try (LiveFleet fleet =
                new LiveFleet(logs, "--model", model.toString(), "--kv-transport", "auto")) {
            Endpoint alone = fleet.prefill();
            var expected = alone.complete(PROMPT, 8).tokens();
            for (int cycle = 1; cycle <= 2; cycle++) {
                assertThat(fleet.router().complete(PROMPT, 8).tokens()).isEqualTo(expected);
                assertThat(metric(fleet.decode(), "kv_transfers_total", "local")).isEqualTo(cycle);
                assertThat(metric(fleet.decode(), "kv_transfers_total", "nixl")).isZero();
                assertThat(metric(fleet.decode(), "kv_peers", "local")).isEqualTo(1);
                fleet.prefillAdmin().post("/sleep?level=1&mode=wait");
                Await.until(
                        "the peer is dropped",
                        LiveFleet.LIMIT,
                        () -> metric(fleet.decode(), "kv_peers", "local") == 0,
                        () -> "still loaded");
                fleet.prefillAdmin().post("/wake_up");
            }
            assertThat(fleet.router().complete(PROMPT, 8).tokens()).isEqualTo(expected);
        }
    }

    private static double metric(Endpoint engine, String name, String transport) {
        return LiveFleet.metric(engine, "dormouse:" + name, transport);
    }
}
