package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The push connector over the real library, with memory that really goes and comes: prompts are
 * written from one engine's blocks into another's, between sleeps of both.
 */
final class PushOverNixlTest {
    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    /** {@code tcp} writes by address, in the waiting process; the others as the machine allows. */
    @ParameterizedTest
    @ValueSource(strings = {"", "TLS=tcp"})
    void promptsAreWrittenBetweenSleepsOfBothEngines(String engineConfig) {
        Map<String, String> backend =
                engineConfig.isEmpty() ? Map.of() : Map.of("engine_config", engineConfig);
        try (NixlEngine p = new NixlEngine("P", backend, NixlEngine.Mode.PUSH);
                NixlEngine d = new NixlEngine("D", backend, NixlEngine.Mode.PUSH)) {
            for (int round = 0; round < 6; round++) {
                String id = "r" + round;
                d.decode("d" + id, p.prefill("p" + id, round));
                Await.until(
                        "the push of " + id,
                        NixlEngine.LIMIT,
                        () -> {
                            p.step();
                            d.step();
                            return d.received().contains("d" + id) && p.sent().contains("p" + id);
                        },
                        () -> d.received() + " " + p.sent());
                assertThat(d.failed()).isEmpty();
                assertThat(d.holds(round)).isTrue();
                if (round % 3 != 0) {
                    d.sleepAndWake();
                }
                if (round % 3 != 1) {
                    p.sleepAndWake();
                }
            }
        }
    }
}
