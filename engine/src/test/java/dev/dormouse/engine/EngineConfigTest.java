package dev.dormouse.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.KvType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which settings an engine takes. */
final class EngineConfigTest {
    private static EngineConfig config(
            int blockTokens, int maxModelLength, int maxSequences, int maxBatched, int maxWaiting) {
        return new EngineConfig(
                "m",
                1,
                blockTokens,
                KvType.F16,
                maxModelLength,
                maxSequences,
                maxBatched,
                maxWaiting,
                true,
                true,
                false,
                true,
                false);
    }

    @ParameterizedTest
    @CsvSource({
        "0, 2, 1, 1, 0, --block-size is 0",
        "1, 1, 1, 1, 0, --max-model-len is 1",
        "1, 2, 0, 1, 0, --max-num-seqs is 0",
        "1, 2, 2147483647, 2147483647, 0, --max-num-seqs is 2147483647",
        "1, 2, 2, 1, 0, --max-num-batched-tokens is 1",
        "1, 2, 1, 1, -1, --max-num-waiting is -1",
        "1, 2, 1, 1, 2147483647, --max-num-waiting is 2147483647"
    })
    void aSettingOutOfRangeIsRefusedByTheNameOfItsOption(
            int blockTokens,
            int maxModelLength,
            int maxSequences,
            int maxBatched,
            int maxWaiting,
            String message) {
        assertThatThrownBy(
                        () ->
                                config(
                                        blockTokens,
                                        maxModelLength,
                                        maxSequences,
                                        maxBatched,
                                        maxWaiting))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(message + ", but must be ");
    }

    @Test
    void theLimitsThemselvesAreAccepted() {
        assertThat(config(1, 2, 1, 1, 0).maxWaiting()).isZero();
        assertThat(config(1, 2, 1_000_000, 1_000_000, 1_000_000).maxWaiting()).isEqualTo(1_000_000);
    }
}
