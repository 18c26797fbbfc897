package dev.dormouse.router;

import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** The engines of one role, taken in turn. Thread-safe. */
final class EnginePool {
    private final List<Engine> engines;
    private final AtomicInteger turn = new AtomicInteger();

    EnginePool(Role role, List<URI> baseUrls) {
        List<Engine> all = new ArrayList<>();
        for (URI url : baseUrls) {
            all.add(new Engine(role, all.size(), url));
        }
        engines = List.copyOf(all);
    }

    List<Engine> engines() {
        return engines;
    }

    /** True if at least one engine passed its last health check. */
    boolean healthy() {
        return engines.stream().anyMatch(engine -> engine.health().healthy());
    }

    /**
     * The order in which the next request tries the engines: the healthy ones by turns, then the
     * others. Health is only a preference, since it may be a moment old: with no healthy engine the
     * attempt itself tells.
     */
    List<Engine> candidates() {
        List<Engine> healthy = new ArrayList<>();
        List<Engine> others = new ArrayList<>();
        for (Engine engine : engines) {
            (engine.health().healthy() ? healthy : others).add(engine);
        }
        int next = turn.getAndIncrement();
        rotate(healthy, next);
        rotate(others, next);
        healthy.addAll(others);
        return healthy;
    }

    private static void rotate(List<Engine> list, int by) {
        if (!list.isEmpty()) {
            Collections.rotate(list, -Math.floorMod(by, list.size()));
        }
    }
}
