package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Engines with a tiny model and a router as processes, where the prefill engine pushes. */
class PushEndToEndTest {
    private static final String PROMPT =
            "In the evening the lamps along the harbour were lit one by one, and then the boats came"
                    + " home with all that they had caught since the morning";
    private static final int TOKENS = 12;

    @TempDir private static Path logs;
    private static LiveFleet fleet;
    private static List<Integer> alone;

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        Path model = logs.resolve("tiny");
        TinyModelFolder.write(model);
        fleet =
                new LiveFleet(
                        logs,
                        "--model",
                        model.toString(),
                        "--kv-transfer-config",
                        "{\"kv_connector\": \"NixlPushConnector\", \"kv_role\": \"kv_both\"}");
        alone = fleet.decode().complete(PROMPT, TOKENS).tokens();
        assertThat(alone).hasSize(TOKENS);
    }

    @AfterAll
    static void stop() {
        if (fleet != null) {
            fleet.close();
        }
    }

    @Test
    void promptsArePushedAndTheTokensStayTheSameOverSleepsOfEither() {
        requirePush();
        for (List<Endpoint> sleepers :
                List.of(
                        List.of(fleet.decodeAdmin()),
                        List.of(fleet.prefillAdmin()),
                        List.of(fleet.prefillAdmin(), fleet.decodeAdmin()))) {
            sleepers.forEach(engine -> engine.post("/sleep?level=1"));
            sleepers.forEach(engine -> engine.post("/wake_up"));
            requirePush();
            requirePush();
        }
    }

    private static void requirePush() {
        Counters before = Counters.of(fleet.decode());
        Counters ofPrefill = Counters.of(fleet.prefill());
        assertThat(fleet.router().complete(PROMPT, TOKENS).tokens()).isEqualTo(alone);
        Counters spent = Counters.of(fleet.decode()).minus(before);
        assertThat(spent.computedPromptTokens()).as("the prompt came from the holder").isZero();
        assertThat(spent.reads()).as("it was not read").isZero();
        assertThat(spent.failedTransfers()).isZero();
        Await.until(
                "the write is counted and nothing is held",
                LiveFleet.LIMIT,
                () ->
                        Counters.of(fleet.prefill()).minus(ofPrefill).reads() == 1
                                && LiveFleet.metric(
                                                fleet.prefill(),
                                                "dormouse:num_requests_held_for_remote")
                                        == 0,
                () -> fleet.prefill().get("/metrics"));
    }
}
