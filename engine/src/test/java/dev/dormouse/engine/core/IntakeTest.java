package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What peers come to know of a request. */
final class IntakeTest {
    private final Intake intake =
            new Intake(
                    EngineHarness.roomy(),
                    100,
                    Set.of(),
                    _ -> {
                        throw new AssertionError("nothing is decoded");
                    },
                    new Random(20261130));

    private String idOf(String id, String sharedId) {
        return intake.identify(
                        new GenerationRequest(
                                id, sharedId, List.of(1), SamplingParameters.greedy(1), null, 0))
                .id();
    }

    /**
     * vLLM's push connector compares ids without a dash and eight hexadecimal digits at the end.
     */
    @Test
    void anIdIsTheSharedOneWithVllmsSuffix() {
        String id = idOf("cmpl-1-0-own", "cmpl-1-0");
        assertThat(id).matches("cmpl-1-0-[0-9a-f]{8}").isNotEqualTo(idOf("other", "cmpl-1-0"));
        assertThat(idOf("r", "r")).matches("r-[0-9a-f]{8}");
    }

    @Test
    void whatPeersOfVllmKeepIsKept() {
        String longest = "cmpl-" + "~".repeat(128) + "-127";
        for (String shared : List.of("cmpl-a:b/c=d+e@f#[g]'h\"-0", "HB:x", longest)) {
            String expected = shared.startsWith("HB:") ? "HB_x" : shared;
            assertThat(idOf("own", shared))
                    .startsWith(expected + "-")
                    .hasSize(expected.length() + 9);
        }
    }

    @Test
    void whatWouldBeTakenForSomethingElseIsReplaced() {
        assertThat(idOf("own", "a,b c\nd\u00e9")).startsWith("a_b_c_d_-");
        for (String kind : List.of("HB", "PUSH_REG", "DORMOUSE_CLAIMED", "DORMOUSE_PUSH_END")) {
            assertThat(idOf("own", kind + ":x:y")).startsWith(kind + "_x:y-");
        }
    }
}
