package dev.dormouse.router.routing;

import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** The engines of one role, taken in turn. Thread-safe. */
public final class EnginePool {
    private final List<Engine> engines;
    private final AtomicInteger turn = new AtomicInteger();

    /** {@code engines} are of one role, at least one. */
    public EnginePool(List<Engine> engines) {
        this.engines = List.copyOf(engines);
    }

    /** Engines of one role at these addresses. */
    public static EnginePool of(Role role, List<URI> baseUrls) {
        List<Engine> all = new ArrayList<>();
        for (URI url : baseUrls) {
            all.add(new Engine(role, all.size(), url));
        }
        return new EnginePool(all);
    }

    /** All engines, as they were given. */
    public List<Engine> engines() {
        return engines;
    }

    /** True if at least one engine took requests at its last check. */
    public boolean ready() {
        return engines.stream().anyMatch(engine -> engine.health().ready());
    }

    /**
     * The order in which the next request tries the engines: those that are ready by turns, then
     * sleepers, then the others. What is known of an engine is only a preference, since it may be a
     * moment old: with no engine ready the attempt itself tells.
     */
    public List<Engine> candidates() {
        Map<Engine.Readiness, List<Engine>> alike = new EnumMap<>(Engine.Readiness.class);
        for (Engine engine : engines) {
            alike.computeIfAbsent(engine.health().readiness(), _ -> new ArrayList<>()).add(engine);
        }
        int next = turn.getAndIncrement();
        List<Engine> ordered = new ArrayList<>();
        for (List<Engine> group : alike.values()) {
            Collections.rotate(group, -Math.floorMod(next, group.size()));
            ordered.addAll(group);
        }
        return ordered;
    }
}
