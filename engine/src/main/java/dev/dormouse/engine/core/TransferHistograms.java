package dev.dormouse.engine.core;

import dev.dormouse.connector.TransferStatistics.TransferSample;
import dev.dormouse.engine.EngineStatistics;
import java.util.stream.IntStream;

/** What transfers were like, in the buckets of vLLM 0.33.0 (nixl/stats.py). */
final class TransferHistograms {
    private final HistogramRecorder seconds =
            new HistogramRecorder(.005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 5);
    private final HistogramRecorder postSeconds =
            new HistogramRecorder(.001, .005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 5);

    /** 2 KiB to 8 GiB. */
    private final HistogramRecorder bytes =
            new HistogramRecorder(
                    IntStream.rangeClosed(0, 11)
                            .mapToDouble(i -> Math.scalb(1.0, 11 + 2 * i))
                            .toArray());

    private final HistogramRecorder descriptors =
            new HistogramRecorder(
                    10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000);

    void record(TransferSample sample) {
        seconds.record(sample.durationSeconds());
        postSeconds.record(sample.postSeconds());
        bytes.record((double) sample.bytes());
        descriptors.record((double) sample.descriptors());
    }

    EngineStatistics.Transfers histograms() {
        return new EngineStatistics.Transfers(
                seconds.histogram(),
                postSeconds.histogram(),
                bytes.histogram(),
                descriptors.histogram());
    }
}
