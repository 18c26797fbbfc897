package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Engines with a tiny model and a router as processes, where the prefill engine pushes. */
class PushEndToEndTest {
    @TempDir private Path logs;

    private LiveFleet fleet(String transport) {
        Path model = logs.resolve("tiny");
        TinyModelFolder.write(model);
        return new LiveFleet(
                logs,
                "--model",
                model.toString(),
                "--kv-transfer-config",
                PushedPrompts.CONFIG,
                "--kv-transport",
                transport);
    }

    @ParameterizedTest
    @CsvSource({"nixl, nixl", "auto, local"})
    void promptsArePushedAndTheTokensStayTheSameOverSleepsOfEither(String chosen, String taken) {
        Natives.nixlDirectory();
        try (LiveFleet fleet = fleet(chosen)) {
            new PushedPrompts(fleet, taken).requirePushesOverSleeps();
        }
    }

    @Test
    void aHolderThatMapsTheWaitingEngineIsNamedWhenItIsStoppedAndForgottenWhenItIsKilled() {
        try (LiveFleet fleet = fleet("local")) {
            PushedPrompts prompts = new PushedPrompts(fleet, "local");
            prompts.requirePush();
            long holder = fleet.prefillPid();
            LiveFleet.signal("STOP", holder);
            try {
                assertThatThrownBy(() -> fleet.decodeAdmin().post("/sleep?level=1&mode=wait"))
                        .isInstanceOf(FleetException.class)
                        .hasMessageContaining("with 503")
                        .hasMessageContaining("memory in use by")
                        .hasMessageContaining("(process " + holder + ")");
                assertThat(alone(fleet)).isEqualTo(prompts.alone());
            } finally {
                LiveFleet.signal("CONT", holder);
            }
            Await.until(
                    "the fleet serves again",
                    LiveFleet.LIMIT,
                    () -> fleet.router().status(PushedPrompts.PROMPT) == 200,
                    () -> fleet.router().get("/metrics"));
            prompts.requirePush();

            fleet.killPrefill();
            fleet.decodeAdmin().post("/sleep?level=1&mode=wait");
            fleet.decodeAdmin().post("/wake_up");
            assertThat(alone(fleet)).isEqualTo(prompts.alone());
            fleet.restartPrefill();
            prompts.requirePush();

            fleet.killDecode(); // whose pages the holder maps
            fleet.restartDecode();
            prompts.requirePush();
        }
    }

    private static List<Integer> alone(LiveFleet fleet) {
        return fleet.decode().complete(PushedPrompts.PROMPT, PushedPrompts.TOKENS).tokens();
    }
}
