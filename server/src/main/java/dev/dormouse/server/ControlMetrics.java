package dev.dormouse.server;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.WakeTag;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

/**
 * What an engine's sleep looks like in its metrics: vLLM's series, and what they do not tell, such
 * as half a wake. Thread-safe.
 */
final class ControlMetrics {
    /** Operations that may wait for requests or readers. */
    private static final List<String> OPERATIONS =
            List.of("sleep", "release_kv_cache_memory", "wake", "pause");

    private final MeterRegistry registry;
    private final Tags tags;
    private final Engine engine;
    private final Map<String, AtomicInteger> inFlight = new HashMap<>();
    private final Map<String, Counter> failures = new HashMap<>();

    ControlMetrics(MeterRegistry registry, Tags tags, Engine engine) {
        this.registry = registry;
        this.tags = tags;
        this.engine = engine;
        registerOperations();
        registerState();
    }

    /** A control call that began. */
    Operation begin(String operation) {
        return new Operation(operation);
    }

    /** A control call until its answer. */
    final class Operation implements AutoCloseable {
        private final String name;
        private final AtomicInteger running;

        private Operation(String name) {
            this.name = name;
            this.running = Objects.requireNonNull(inFlight.get(name), name);
            running.incrementAndGet();
        }

        /** The engine could not do it, although the call was in order. */
        void failed() {
            Objects.requireNonNull(failures.get(name)).increment();
        }

        @Override
        public void close() {
            running.decrementAndGet();
        }
    }

    private void registerOperations() {
        for (String operation : OPERATIONS) {
            AtomicInteger running = new AtomicInteger();
            inFlight.put(operation, running);
            failures.put(
                    operation,
                    Counter.builder("dormouse:transition_failures")
                            .description("Transitions that were in order and failed.")
                            .tags(tags.and("operation", operation))
                            .register(registry));
            if (EngineStatistics.TRANSITIONS.contains(operation)) {
                Gauge.builder(
                                "vllm:sleep_mode_operations_in_flight",
                                running,
                                AtomicInteger::doubleValue)
                        .description("Transitions under way.")
                        .tags(tags.and("operation", operation))
                        .register(registry);
            }
        }
    }

    private void registerState() {
        sleepState("awake", ControlMetrics::isAwake);
        // As in vLLM, by what the weights do: neither holds while only the KV cache is away.
        sleepState("weights_offloaded", state -> areWeightsAsleep(state) && state.sleepLevel() < 2);
        sleepState("discard_all", state -> areWeightsAsleep(state) && state.sleepLevel() == 2);
        for (Phase phase : Phase.values()) {
            gauge(
                    "dormouse:engine_phase",
                    "1 for the phase that the engine is in.",
                    tags.and("phase", phase.name().toLowerCase(Locale.ROOT)),
                    state -> state.phase() == phase);
        }
        for (WakeTag tag : WakeTag.values()) {
            gauge(
                    "dormouse:engine_tag_awake",
                    "1 if the tag is awake.",
                    tags.and("tag", tag.wireName()),
                    state -> !state.asleep().contains(tag));
        }
    }

    private static boolean isAwake(EngineState state) {
        return switch (state.phase()) {
            case AWAKE, PAUSING, PAUSED -> true;
            case FALLING_ASLEEP, ASLEEP, WAKING, FAILED, CLOSED -> false;
        };
    }

    private static boolean areWeightsAsleep(EngineState state) {
        return state.isSleeping() && state.asleep().contains(WakeTag.WEIGHTS);
    }

    private void sleepState(String name, Predicate<EngineState> holds) {
        gauge(
                "vllm:engine_sleep_state",
                "1 for the state that the engine is in.",
                tags.and("sleep_state", name),
                holds);
    }

    private void gauge(String name, String description, Tags labels, Predicate<EngineState> holds) {
        Gauge.builder(name, engine, e -> holds.test(e.state()) ? 1 : 0)
                .description(description)
                .tags(labels)
                .register(registry);
    }
}
