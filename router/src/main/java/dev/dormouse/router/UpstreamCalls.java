package dev.dormouse.router;

import dev.dormouse.http.TimeLimits;
import dev.dormouse.router.routing.Role;
import dev.dormouse.router.routing.Step;
import java.net.http.HttpClient;
import java.time.Duration;

/** Opens exchanges with engines. Thread-safe. */
final class UpstreamCalls {
    private final HttpClient http;
    private final TimeLimits limits;
    private final RouterMetrics metrics;
    private final Duration prefillTimeout;
    private final Duration decodeTimeout;

    /** The timeouts bound each wait for bytes of an engine of that role. */
    UpstreamCalls(
            HttpClient http,
            TimeLimits limits,
            RouterMetrics metrics,
            Duration prefillTimeout,
            Duration decodeTimeout) {
        this.http = http;
        this.limits = limits;
        this.metrics = metrics;
        this.prefillTimeout = prefillTimeout;
        this.decodeTimeout = decodeTimeout;
    }

    /** Sends a client's request to the engine that is to be asked. */
    UpstreamCall open(Step.Ask ask, Exchange exchange) {
        return new UpstreamCall(
                ask.engine(),
                exchange.endpoint(),
                exchange.requestFor(ask),
                http,
                limits,
                ask.engine().role() == Role.PREFILL ? prefillTimeout : decodeTimeout,
                metrics,
                exchange.client());
    }
}
