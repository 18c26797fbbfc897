package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;

final class ExponentialTest {
    @Test
    void exponentialIsRightToAFewUnitsInTheLastPlace() {
        for (float x = -87.0f; x < 88.0f; x += 0.0371f) {
            assertThat((double) Exponential.exp(x))
                    .as("exp(%s)", x)
                    .isCloseTo(Math.exp(x), Percentage.withPercentage(2e-5));
        }
    }

    @Test
    void theWeightOfTheMaximumIsExactlyOne() {
        assertThat(Exponential.exp(0.0f)).isEqualTo(1.0f);
        assertThat(Exponential.exp(-0.0f)).isEqualTo(1.0f);
    }

    @Test
    void argumentsOutOfRangeAreClamped() {
        assertThat(Exponential.exp(Float.NEGATIVE_INFINITY)).isBetween(0.0f, 1.2e-38f);
        assertThat(Exponential.exp(Float.POSITIVE_INFINITY)).isBetween(1e38f, Float.MAX_VALUE);
    }
}
