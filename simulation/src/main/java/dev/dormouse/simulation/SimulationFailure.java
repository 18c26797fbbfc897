package dev.dormouse.simulation;

import java.util.List;

/** A world in which a rule was broken: what rule, the world, the last events, and how to see it. */
public final class SimulationFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final long seed;

    SimulationFailure(long seed, Setting setting, List<String> lastEvents, Throwable cause) {
        super(
                "seed %d: %s%nrepeat it with: ./dormouse simulate --seed %d%nworld: %s%nlast events:%n%s"
                        .formatted(
                                seed,
                                cause.getMessage(),
                                seed,
                                setting,
                                String.join(System.lineSeparator(), lastEvents)),
                cause);
        this.seed = seed;
    }

    /** The world's seed. */
    public long seed() {
        return seed;
    }
}
