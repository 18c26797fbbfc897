package dev.dormouse.server;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.TransferStatistics.TransferSample;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.EngineStatistics.TransitionSample;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * An engine's metrics in Prometheus' text format, under vLLM's names where vLLM has one and under
 * {@code dormouse:} otherwise. Every series exists from the start. Thread-safe.
 */
final class ServerMetrics implements AutoCloseable {
    private static final double[] SHORT_SECONDS = {
        .001, .005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 2.5, 5, 10, 30, 60
    };
    private static final double[] TRANSFER_SECONDS = {
        .005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 5
    };
    private static final double[] POST_SECONDS = {
        .001, .005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 5
    };
    private static final double[] TRANSFER_BYTES =
            IntStream.rangeClosed(0, 11).mapToDouble(i -> Math.pow(2, 11 + 2 * i)).toArray();
    private static final double[] DESCRIPTORS = {
        10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000
    };
    private static final double[] TRANSITION_SECONDS = {.01, .1, 1, 10, 30, 60, 120, 300, 600};
    private final PrometheusMeterRegistry registry =
            new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final Engine engine;
    private final LongSupplier nanoClock;
    private final Tags tags;
    private final DistributionSummary transferSeconds;
    private final DistributionSummary postSeconds;
    private final DistributionSummary transferBytes;
    private final DistributionSummary descriptors;
    private final DistributionSummary firstToken;
    private final DistributionSummary interToken;
    private final DistributionSummary wholeRequest;
    private final Map<String, DistributionSummary> transitions = new HashMap<>();
    private final ControlMetrics control;
    private volatile EngineStatistics latest;

    ServerMetrics(Engine engine, LongSupplier nanoClock) {
        this.engine = engine;
        this.nanoClock = nanoClock;
        this.tags = Tags.of("model_name", engine.info().servedModelName(), "engine", "0");
        this.latest = engine.statistics();
        transferSeconds =
                histogram(
                        "vllm:nixl_xfer_time_seconds",
                        "Duration of KV transfers.",
                        TRANSFER_SECONDS);
        postSeconds =
                histogram(
                        "vllm:nixl_post_time_seconds", "Time to post KV transfers.", POST_SECONDS);
        transferBytes =
                histogram("vllm:nixl_bytes_transferred", "Bytes per KV transfer.", TRANSFER_BYTES);
        descriptors =
                histogram("vllm:nixl_num_descriptors", "Descriptors per KV transfer.", DESCRIPTORS);
        firstToken =
                histogram(
                        "vllm:time_to_first_token_seconds",
                        "From request to each choice's first token.",
                        SHORT_SECONDS);
        interToken =
                histogram(
                        "vllm:inter_token_latency_seconds",
                        "Between tokens of one choice.",
                        SHORT_SECONDS);
        wholeRequest =
                histogram(
                        "vllm:e2e_request_latency_seconds",
                        "From request to each choice's last token.",
                        SHORT_SECONDS);
        for (String operation : ControlMetrics.SLEEP_OPERATIONS) {
            transitions.put(
                    operation,
                    histogram(
                            "vllm:sleep_mode_operation_duration_seconds",
                            "Duration of transitions that changed something.",
                            TRANSITION_SECONDS,
                            Tag.of("operation", operation)));
        }
        registerTransferCounters();
        registerEngineFigures();
        control = new ControlMetrics(registry, tags, engine);
    }

    /** Everything in Prometheus' text format. */
    String scrape() {
        synchronized (this) {
            EngineStatistics statistics = engine.statistics();
            for (TransferSample sample : statistics.samples()) {
                transferSeconds.record(sample.durationSeconds());
                postSeconds.record(sample.postSeconds());
                transferBytes.record((double) sample.bytes());
                descriptors.record((double) sample.descriptors());
            }
            for (TransitionSample sample : statistics.transitions()) {
                DistributionSummary summary = transitions.get(sample.operation());
                if (summary != null) {
                    summary.record(sample.seconds());
                }
            }
            latest = statistics;
        }
        return registry.scrape();
    }

    /** Figures of sleep, wake and pause. */
    ControlMetrics control() {
        return control;
    }

    /** The times of one HTTP request's choices, measured from now. */
    Timing start(int choices) {
        return new Timing(choices);
    }

    /** Measures each choice of one request on its own; used by one thread. */
    final class Timing implements AutoCloseable {
        private final long startNanos = nanoClock.getAsLong();
        private final long[] lastNanos;
        private final boolean[] started;

        private Timing(int choices) {
            lastNanos = new long[choices];
            started = new boolean[choices];
        }

        /** New tokens of a choice came. */
        void tokens(int choice, int count) {
            long now = nanoClock.getAsLong();
            if (count <= 0) {
                return;
            }
            if (started[choice]) {
                interToken.record((now - lastNanos[choice]) / 1e9 / count);
            } else {
                firstToken.record((now - startNanos) / 1e9);
            }
            started[choice] = true;
            lastNanos[choice] = now;
        }

        @Override
        public void close() {
            for (int choice = 0; choice < started.length; choice++) {
                if (started[choice]) {
                    wholeRequest.record((lastNanos[choice] - startNanos) / 1e9);
                }
            }
        }
    }

    private void registerTransferCounters() {
        transferCounter(
                "vllm:nixl_num_failed_transfers",
                "Reads, handshakes and notifications that failed.",
                t -> t.failedTransfers() + t.failedHandshakes() + t.failedNotifications());
        transferCounter(
                "vllm:nixl_num_failed_notifications",
                "Notifications that could not be sent.",
                TransferStatistics::failedNotifications);
        transferCounter(
                "vllm:nixl_num_kv_expired_reqs",
                "Requests whose blocks were freed unread when their lease ran out.",
                TransferStatistics::expiredRequests);
        transferCounter(
                "vllm:nixl_num_notifications_after_expiry",
                "Completions for requests that were not held any more.",
                TransferStatistics::notificationsAfterExpiry);
        transferCounter(
                "dormouse:nixl_handshakes",
                "Handshakes that succeeded.",
                TransferStatistics::handshakes);
        transferCounter(
                "dormouse:nixl_rehandshakes",
                "Handshakes with a peer that had been loaded before.",
                TransferStatistics::rehandshakes);
        transferCounter(
                "dormouse:kv_revoked_requests",
                "Held requests that were taken back from their readers before a sleep.",
                TransferStatistics::revokedRequests);
        transferCounter(
                "dormouse:nixl_failed_handshakes",
                "Handshakes that failed.",
                TransferStatistics::failedHandshakes);
        transferCounter(
                "dormouse:nixl_failed_reads",
                "Reads that failed or were refused.",
                TransferStatistics::failedTransfers);
        transferCounter(
                "dormouse:nixl_registrations",
                "Times that the KV cache was registered.",
                TransferStatistics::registrations);
        transferCounter(
                "dormouse:nixl_malformed_notifications",
                "Notifications that were dropped because they could not be understood.",
                TransferStatistics::malformedNotifications);
    }

    private void registerEngineFigures() {
        gauge("vllm:num_requests_running", "Sequences being computed.", EngineStatistics::running);
        gauge(
                "vllm:num_requests_waiting",
                "Sequences waiting to be scheduled.",
                EngineStatistics::waiting);
        gauge(
                "dormouse:num_requests_waiting_for_remote_kv",
                "Sequences whose prompt is being read from another engine.",
                EngineStatistics::waitingForRemoteKv);
        gauge(
                "dormouse:num_requests_held_for_remote",
                "Ended sequences whose blocks are held for a reader.",
                EngineStatistics::heldForRemote);
        gauge(
                "vllm:kv_cache_usage_perc",
                "Share of KV blocks in use.",
                s -> 1 - s.kvBlocksFree() / (double) s.kvBlocks());
        gauge(
                "dormouse:registration_epoch",
                "Times that the KV cache was published.",
                EngineStatistics::registrationEpoch);
        counter("vllm:prompt_tokens", "Prompt tokens of requests.", EngineStatistics::promptTokens);
        counter(
                "dormouse:prompt_tokens_computed",
                "Prompt tokens whose KV this engine computed itself.",
                EngineStatistics::computedPromptTokens);
        counter(
                "dormouse:prompt_tokens_remote",
                "Prompt tokens whose KV was read from another engine.",
                EngineStatistics::remotePromptTokens);
        counter("vllm:generation_tokens", "Tokens generated.", EngineStatistics::generatedTokens);
        counter(
                "vllm:num_preemptions",
                "Sequences that lost their blocks.",
                EngineStatistics::preemptions);
        counter(
                "vllm:prefix_cache_queries",
                "Prompt tokens looked up in the prefix cache.",
                EngineStatistics::prefixCacheQueries);
        counter(
                "vllm:prefix_cache_hits",
                "Prompt tokens found.",
                EngineStatistics::prefixCacheHits);
    }

    private void transferCounter(
            String name, String description, ToDoubleFunction<TransferStatistics> value) {
        counter(name, description, statistics -> value.applyAsDouble(statistics.transfers()));
    }

    private void counter(
            String name, String description, ToDoubleFunction<EngineStatistics> value) {
        FunctionCounter.builder(name, this, metrics -> value.applyAsDouble(metrics.latest))
                .description(description)
                .tags(tags)
                .register(registry);
    }

    private void gauge(String name, String description, ToDoubleFunction<EngineStatistics> value) {
        Gauge.builder(name, this, metrics -> value.applyAsDouble(metrics.latest))
                .description(description)
                .tags(tags)
                .register(registry);
    }

    private DistributionSummary histogram(
            String name, String description, double[] buckets, Tag... more) {
        return DistributionSummary.builder(name)
                .description(description)
                .serviceLevelObjectives(buckets)
                .tags(tags.and(more))
                .register(registry);
    }

    @Override
    public void close() {
        registry.close();
    }
}
