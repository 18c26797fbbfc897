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
                        .mapToObj(i -> footprint(1000 + 500L * i, 10 + 5L * i, 40 + i))
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
                        .mapToObj(i -> footprint(i < 2 ? 0 : i == 9 ? 1 << 30 : 4096, 0, 7))
                        .toList();
        assertThat(Growth.of("P", samples, 5).pssBytes()).isEqualTo(0.0, EXACT);
        assertThat(Growth.of("P", samples, 5).descriptors()).isEqualTo(0.0, EXACT);
    }

    @Test
    void whatGrowsIsNamedAndWhatDoesNotIsNot() {
        Growth steady = growth(16 << 10, 0, 0, 0);
        assertThat(steady.excesses()).isEmpty();
        assertThat(growth(17 << 10, 0, 0, 0).excesses())
                .containsExactly(
                        "P grows by 17408.000 bytes of PSS per cycle, at most 16384.000 are allowed");
        assertThat(growth(0, 1, 0, 0).excesses()).singleElement().asString().contains("mappings");
        assertThat(growth(0, 0, 1, 0).excesses())
                .singleElement()
                .asString()
                .contains("descriptors");
        assertThat(growth(0, 0, 0, 1).excesses()).singleElement().asString().contains("threads");
    }

    /** Of an engine that grows by as much in each of some cycles. */
    private static Growth growth(long pssBytes, long mappings, long descriptors, long threads) {
        return Growth.of(
                "P",
                IntStream.range(0, 5)
                        .mapToObj(
                                i ->
                                        new Footprint(
                                                i * pssBytes,
                                                0,
                                                i * mappings,
                                                i * descriptors,
                                                i * threads))
                        .toList(),
                1);
    }

    @Test
    void theSystemTellsWhatThisProcessHolds() {
        Footprint own = Footprint.ofProcess(ProcessHandle.current().pid());
        assertThat(own.pssBytes()).isGreaterThan(own.anonymousBytes() / 2);
        assertThat(own.mappings()).isGreaterThan(10);
        assertThat(own.descriptors()).isGreaterThan(2);
        assertThat(own.threads()).isGreaterThan(2);
    }

    private static Footprint footprint(long pssBytes, long anonymousBytes, long descriptors) {
        return new Footprint(pssBytes, anonymousBytes, 0, descriptors, 0);
    }
}
