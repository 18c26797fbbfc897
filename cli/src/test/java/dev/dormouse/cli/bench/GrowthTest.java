package dev.dormouse.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.IntStream;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

final class GrowthTest {
    private static final Offset<Double> EXACT = Offset.offset(1e-9);

    @Test
    void steadyGrowthIsCountedPerCycle() {
        List<Footprint> samples =
                IntStream.range(0, 10)
                        .mapToObj(i -> new Footprint(1000 + 500L * i, 10 + 5L * i, 40 + i))
                        .toList();
        Growth growth = Growth.of("P", samples, 10);
        assertThat(growth.pssBytes()).isEqualTo(50.0, EXACT);
        assertThat(growth.anonymousBytes()).isEqualTo(0.5, EXACT);
        assertThat(growth.descriptors()).isEqualTo(0.1, EXACT);
    }

    @Test
    void aStepAndAPeakAreNoGrowth() {
        List<Footprint> samples =
                IntStream.range(0, 20)
                        .mapToObj(i -> new Footprint(i < 2 ? 0 : i == 9 ? 1 << 30 : 4096, 0, 7))
                        .toList();
        assertThat(Growth.of("P", samples, 5).pssBytes()).isEqualTo(0.0, EXACT);
        assertThat(Growth.of("P", samples, 5).descriptors()).isEqualTo(0.0, EXACT);
    }
}
