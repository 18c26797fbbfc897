package dev.dormouse.cli.bench.costs;

import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.MetricSums;

/** An engine's own count of something that it times: how often, and how long in all. */
record Metrics(double count, double seconds) {
    /** The engine's sum until now. */
    static Metrics of(EngineProcess engine, String histogram) {
        MetricSums sums = MetricSums.of(engine.endpoint());
        return new Metrics(sums.value(histogram + "_count"), sums.value(histogram + "_sum"));
    }

    /**
     * The mean since an earlier look, in milliseconds.
     *
     * @param count how often it must have happened since
     */
    double meanMillisSince(Metrics earlier, int count) {
        if (this.count - earlier.count != count) {
            throw new FleetException(
                    "an engine counted %.0f times what happened %d times"
                            .formatted(this.count - earlier.count, count));
        }
        return (seconds - earlier.seconds) * 1e3 / count;
    }
}
