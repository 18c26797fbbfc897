package dev.dormouse.cli.bench.costs;

import java.time.Duration;
import java.util.List;

/** A group of costs that are measured together, with processes of their own. */
interface Part {
    /**
     * Measures, and tells what it does.
     *
     * @throws dev.dormouse.cli.fleet.FleetException if a request that must be answered is not
     */
    List<Figure> measure(Bench bench);

    /**
     * How much is measured.
     *
     * @param warmUps short requests before what is compared by milliseconds: neither the engines'
     *     nor the router's code is compiled before it was used for a while
     * @param rounds of what is measured one after the other and compared by medians
     * @param promptTokens of a prompt that is handed over
     * @param requests of a throughput
     * @param window in which idle processes are watched
     */
    record Amounts(int warmUps, int rounds, int promptTokens, int requests, Duration window) {
        static final Amounts USUAL = new Amounts(400, 9, 1000, 48, Duration.ofSeconds(30));
    }
}
