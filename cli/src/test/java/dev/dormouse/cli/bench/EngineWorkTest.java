package dev.dormouse.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.ModelConfig;
import java.util.List;
import org.junit.jupiter.api.Test;

final class EngineWorkTest {
    /** Two layers of width 64, 4 heads of 32 with 2 of KV, 96 within, a vocabulary of 100. */
    private static final ModelConfig CONFIG =
            new ModelConfig(
                    "m", "llama", 100, 64, 2, 4, 2, 32, 96, 4096, 32, 1e4f, 1e-5f, List.of());

    private static final double LAYER = 64.0 * 128 + 2 * 64 * 64 + 128 * 64 + 3 * 64 * 96;
    private static final double HEAD = 64.0 * 100;

    @Test
    void aPromptReadsTheWeightsOnceAndHasLogitsOfItsLastToken() {
        EngineWork work = EngineWork.prefill(CONFIG, 5000, 3);

        assertThat(work.name()).isEqualTo("prefill 3");
        assertThat(work.tokens()).isEqualTo(3);
        assertThat(work.readBytes()).isEqualTo(5000);
        // Position by position, a query of 128 elements sees 1, 2 and 3 keys, and as many values.
        double attention = 2.0 * 2 * 2 * 128 * (1 + 2 + 3);
        assertThat(work.operations()).isEqualTo(2 * (2 * LAYER * 3 + HEAD) + attention);
    }

    @Test
    void aStepReadsTheWeightsOnceForAllSequencesAndTheCacheOfEach() {
        EngineWork work = EngineWork.decode(CONFIG, 5000, 8, 10, 2, 7);

        assertThat(work.name()).isEqualTo("decode 8 after 10");
        assertThat(work.tokens()).isEqualTo(16);
        assertThat(work.readBytes()).isEqualTo(2 * 5000 + 8 * 7 * (11 + 12));
        double attention = 2.0 * 2 * 2 * 128 * (11 + 12);
        assertThat(work.operations()).isEqualTo(8 * (2 * (2 * LAYER + HEAD) * 2 + attention));
    }

    @Test
    void anEmptyContextIsNotInTheName() {
        assertThat(EngineWork.decode(CONFIG, 1, 1, 0, 1, 1).name()).isEqualTo("decode 1");
    }
}
