package dev.dormouse.router;

import dev.dormouse.router.routing.Detour;
import dev.dormouse.router.routing.Engine;
import dev.dormouse.router.routing.Outcome;
import dev.dormouse.router.routing.Role;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * The router's counters, gauges and histograms; every series exists from the start. Thread-safe.
 */
final class RouterMetrics implements AutoCloseable {
    private static final String PREFIX = "dormouse.router.";
    private static final Duration[] BUCKETS = {
        Duration.ofMillis(5),
        Duration.ofMillis(10),
        Duration.ofMillis(25),
        Duration.ofMillis(50),
        Duration.ofMillis(100),
        Duration.ofMillis(250),
        Duration.ofMillis(500),
        Duration.ofSeconds(1),
        Duration.ofMillis(2500),
        Duration.ofSeconds(5),
        Duration.ofSeconds(10),
        Duration.ofSeconds(30),
        Duration.ofSeconds(60),
        Duration.ofSeconds(120),
        Duration.ofSeconds(300)
    };

    private final PrometheusMeterRegistry registry =
            new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final LongSupplier nanoClock;
    private final Map<Role, AtomicInteger> legsInFlight = new EnumMap<>(Role.class);
    private final Map<Role, Timer> legTimes = new EnumMap<>(Role.class);
    private final Timer firstByte =
            timer("decode.first.byte", "From a decode leg's start to the first byte of its answer.")
                    .register(registry);

    /** A leg that runs. */
    record LegStart(Endpoint endpoint, long nanos) {}

    RouterMetrics(LongSupplier nanoClock, List<Engine> engines) {
        this.nanoClock = nanoClock;
        for (Role role : Role.values()) {
            AtomicInteger inFlight = new AtomicInteger();
            legsInFlight.put(role, inFlight);
            Gauge.builder(PREFIX + "legs.in.flight", inFlight, AtomicInteger::get)
                    .description("Requests that an engine of this role has not finished.")
                    .tag("leg", role.label())
                    .register(registry);
            legTimes.put(
                    role,
                    timer("leg", "Duration of completed legs of completions.")
                            .tag("leg", role.label())
                            .register(registry));
        }
        for (Engine engine : engines) {
            Gauge.builder(PREFIX + "engine.healthy", engine, e -> e.health().alive() ? 1 : 0)
                    .description("1 if the engine was alive at its last health check.")
                    .tag("engine", engine.name())
                    .register(registry);
            Gauge.builder(PREFIX + "engine.ready", engine, e -> e.health().ready() ? 1 : 0)
                    .description("1 if the engine took requests at its last health check.")
                    .tag("engine", engine.name())
                    .register(registry);
        }
        for (Outcome outcome : Outcome.values()) {
            for (Endpoint endpoint : Endpoint.values()) {
                requests(endpoint, outcome);
                for (Engine engine : engines) {
                    if (endpoint != Endpoint.MODELS || engine.role() == Role.DECODE) {
                        legRequests(engine, endpoint, outcome);
                    }
                }
            }
        }
        for (Detour detour : Detour.values()) {
            bypassed(detour);
        }
        withoutHandOver("stop");
        withoutHandOver("other");
    }

    /** Counts a request that has ended. */
    void requestEnded(Endpoint endpoint, Outcome outcome) {
        requests(endpoint, outcome).increment();
    }

    /** Counts a leg as in flight. */
    LegStart legStarted(Role role, Endpoint endpoint) {
        inFlight(role).incrementAndGet();
        return new LegStart(endpoint, nanoClock.getAsLong());
    }

    /** Counts a leg as ended. */
    void legEnded(Engine engine, Outcome outcome, LegStart start) {
        inFlight(engine.role()).decrementAndGet();
        legRequests(engine, start.endpoint(), outcome).increment();
        if (outcome == Outcome.OK && start.endpoint() != Endpoint.MODELS) {
            Timer times = Objects.requireNonNull(legTimes.get(engine.role()));
            times.record(Duration.ofNanos(nanoClock.getAsLong() - start.nanos()));
        }
    }

    /** Notes the first byte of an answer that a client gets from a decode engine. */
    void firstByte(LegStart start) {
        if (start.endpoint() != Endpoint.MODELS) {
            firstByte.record(Duration.ofNanos(nanoClock.getAsLong() - start.nanos()));
        }
    }

    /** Counts a request that left out the prefill leg. */
    void prefillBypassed(Detour reason) {
        bypassed(reason).increment();
    }

    /** Counts a prefill that succeeded and handed nothing over. */
    void prefillWithoutHandOver(boolean stopped) {
        withoutHandOver(stopped ? "stop" : "other").increment();
    }

    /** Everything in Prometheus' text format. */
    String scrape() {
        return registry.scrape();
    }

    @Override
    public void close() {
        registry.close();
    }

    private AtomicInteger inFlight(Role role) {
        return Objects.requireNonNull(legsInFlight.get(role));
    }

    private Counter requests(Endpoint endpoint, Outcome outcome) {
        return Counter.builder(PREFIX + "requests")
                .description("Requests by how they ended for the client.")
                .tag("endpoint", endpoint.path())
                .tag("outcome", outcome.label())
                .register(registry);
    }

    private Counter legRequests(Engine engine, Endpoint endpoint, Outcome outcome) {
        return Counter.builder(PREFIX + "leg.requests")
                .description("Requests to engines by how they ended.")
                .tag("leg", engine.role().label())
                .tag("engine", engine.name())
                .tag("endpoint", endpoint.path())
                .tag("outcome", outcome.label())
                .register(registry);
    }

    private Counter bypassed(Detour reason) {
        return Counter.builder(PREFIX + "prefill.bypassed")
                .description("Requests that a decode engine served alone.")
                .tag("reason", reason.label())
                .register(registry);
    }

    private Counter withoutHandOver(String finishReason) {
        return Counter.builder(PREFIX + "prefill.without.handover")
                .description("Prefills that succeeded without kv_transfer_params.")
                .tag("finish_reason", finishReason)
                .register(registry);
    }

    private static Timer.Builder timer(String name, String description) {
        return Timer.builder(PREFIX + name)
                .description(description)
                .serviceLevelObjectives(BUCKETS);
    }
}
