package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.Histogram;
import java.util.List;
import org.junit.jupiter.api.Test;

final class HistogramRecorderTest {
    private final HistogramRecorder recorder = new HistogramRecorder(.005, 1, 5);

    @Test
    void aBoundIsInsideItsBucketAndWhatIsAboveAllIsCountedToo() {
        for (double value : new double[] {0, .005, Math.nextUp(.005), 1, 5, Math.nextUp(5.0), 9}) {
            recorder.record(value);
        }
        Histogram histogram = recorder.histogram();
        assertThat(histogram.upperBounds()).containsExactly(.005, 1.0, 5.0);
        assertThat(histogram.counts()).containsExactly(2L, 2L, 1L, 2L);
        assertThat(histogram.count()).isEqualTo(7);
        assertThat(histogram.sum())
                .isEqualTo(0 + .005 + Math.nextUp(.005) + 1 + 5 + Math.nextUp(5.0) + 9);
    }

    @Test
    void whatWasHandedOutDoesNotChange() {
        Histogram before = recorder.histogram();
        recorder.record(1);
        assertThat(before)
                .isEqualTo(new Histogram(List.of(.005, 1.0, 5.0), List.of(0L, 0L, 0L, 0L), 0));
    }
}
