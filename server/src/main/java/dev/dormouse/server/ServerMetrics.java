package dev.dormouse.server;

import dev.dormouse.connector.RouteStatistics;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineStatistics;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.ToDoubleFunction;

/**
 * An engine's metrics in Prometheus' text format, under vLLM's names where vLLM has one and under
 * {@code dormouse:} otherwise. Every series exists from the start. Thread-safe.
 */
final class ServerMetrics implements AutoCloseable {
    private static final List<String> TRANSPORTS = List.of("local", "nixl");

    private static final double[] SHORT_SECONDS = {
        .001, .005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 2.5, 5, 10, 30, 60
    };

    private final PrometheusMeterRegistry registry =
            new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final Engine engine;
    private final LongSupplier nanoClock;
    private final Tags tags;
    private final DistributionSummary firstToken;
    private final DistributionSummary interToken;
    private final DistributionSummary wholeRequest;
    private final ControlMetrics control;
    private volatile EngineStatistics latest;

    ServerMetrics(Engine engine, LongSupplier nanoClock) {
        this.engine = engine;
        this.nanoClock = nanoClock;
        this.tags = Tags.of("model_name", engine.info().servedModelName(), "engine", "0");
        this.latest = engine.statistics();
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
        registerTransferCounters();
        TRANSPORTS.forEach(this::registerRoute);
        registerEngineFigures();
        registry.getPrometheusRegistry().register(new EngineHistograms(() -> latest, tags));
        control = new ControlMetrics(registry, tags, engine);
    }

    /** Everything in Prometheus' text format. */
    String scrape() {
        latest = engine.statistics();
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
                "Reads, writes, handshakes and notifications that failed or were late.",
                TransferStatistics::failures);
        transferCounter(
                "vllm:nixl_num_failed_notifications",
                "Notifications that could not be sent or taken.",
                TransferStatistics::failedNotifications);
        transferCounter(
                "vllm:nixl_num_kv_expired_reqs",
                "Leases that ran out, and reads and writes that were late.",
                TransferStatistics::expiredRequests);
        transferCounter(
                "vllm:nixl_num_notifications_after_expiry",
                "Completions for requests that were not held any more.",
                TransferStatistics::notificationsAfterExpiry);
        transferCounter(
                "dormouse:nixl_handshakes",
                "Handshakes after which a peer was loaded.",
                TransferStatistics::handshakes);
        transferCounter(
                "dormouse:nixl_rehandshakes",
                "Handshakes after which a peer was loaded that had been loaded before.",
                TransferStatistics::rehandshakes);
        transferCounter(
                "dormouse:nixl_failed_handshakes",
                "Handshakes that failed.",
                TransferStatistics::failedHandshakes);
        transferCounter(
                "dormouse:nixl_failed_reads",
                "Reads and writes that failed or were refused, for another reason than the time.",
                TransferStatistics::failedTransfers);
        transferCounter(
                "dormouse:nixl_late_reads",
                "Reads and writes that were declined or did not count because their time was over.",
                TransferStatistics::lateTransfers);
        transferCounter(
                "dormouse:kv_expired_leases",
                "Held requests whose blocks were freed unread when their lease ran out.",
                TransferStatistics::expiredLeases);
        transferCounter(
                "dormouse:kv_revoked_requests",
                "Held requests that were taken back unread, before a sleep or for their room.",
                TransferStatistics::revokedRequests);
        transferCounter(
                "dormouse:kv_revoked_mappings",
                "Mappings of the KV cache that engines of this host were asked to give up.",
                TransferStatistics::revokedMappings);
        transferCounter(
                "dormouse:nixl_registrations",
                "Times that the KV cache was registered.",
                TransferStatistics::registrations);
        transferCounter(
                "dormouse:nixl_malformed_notifications",
                "Notifications that were dropped because they could not be understood or were too long.",
                TransferStatistics::malformedNotifications);
    }

    /** What takes which way to other engines; vLLM has one only, and no name for it. */
    private void registerRoute(String transport) {
        Tags labels = tags.and("transport", transport);
        counter(
                "dormouse:kv_transfers",
                "Successful reads and writes, by the transport that they took.",
                labels,
                statistics -> route(statistics, transport).transfers());
        counter(
                "dormouse:kv_transfer_bytes",
                "Bytes of successful reads and writes, by the transport that they took.",
                labels,
                statistics -> route(statistics, transport).bytes());
        gauge(
                "dormouse:kv_peers",
                "Ranks of other engines that are loaded, by the transport that reaches them.",
                labels,
                statistics -> route(statistics, transport).peers());
    }

    private static RouteStatistics route(EngineStatistics statistics, String transport) {
        return statistics.transfers().routes().getOrDefault(transport, RouteStatistics.NONE);
    }

    private void registerEngineFigures() {
        gauge("vllm:num_requests_running", "Sequences being computed.", EngineStatistics::running);
        gauge(
                "vllm:num_requests_waiting",
                "Sequences waiting to be scheduled.",
                EngineStatistics::waiting);
        gauge(
                "dormouse:num_requests_waiting_for_remote_kv",
                "Sequences that wait for their prompt from another engine.",
                EngineStatistics::waitingForRemoteKv);
        gauge(
                "dormouse:num_requests_held_for_remote",
                "Ended sequences whose blocks are held for a reader.",
                EngineStatistics::heldForRemote);
        gauge(
                "dormouse:kv_blocks_held_for_remote",
                "KV blocks that are held for a reader.",
                EngineStatistics::kvBlocksHeld);
        gauge(
                "dormouse:kv_blocks_quarantined",
                "KV blocks that a failed read may still write.",
                EngineStatistics::kvBlocksQuarantined);
        gauge(
                "vllm:kv_cache_usage_perc",
                "Share of KV blocks in use.",
                s -> 1 - s.kvBlocksFree() / (double) s.kvBlocks());
        gauge(
                "dormouse:registration_epoch",
                "The registration epoch that other engines are told; each publish raises it.",
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
        counter(
                "dormouse:first_tokens_remote",
                "First output tokens that were taken from the engine that computed the prompt.",
                EngineStatistics::remoteFirstTokens);
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
        counter(name, description, tags, value);
    }

    private void counter(
            String name,
            String description,
            Tags labels,
            ToDoubleFunction<EngineStatistics> value) {
        FunctionCounter.builder(name, this, metrics -> value.applyAsDouble(metrics.latest))
                .description(description)
                .tags(labels)
                .register(registry);
    }

    private void gauge(String name, String description, ToDoubleFunction<EngineStatistics> value) {
        gauge(name, description, tags, value);
    }

    private void gauge(
            String name,
            String description,
            Tags labels,
            ToDoubleFunction<EngineStatistics> value) {
        Gauge.builder(name, this, metrics -> value.applyAsDouble(metrics.latest))
                .description(description)
                .tags(labels)
                .register(registry);
    }

    private DistributionSummary histogram(String name, String description, double[] buckets) {
        return DistributionSummary.builder(name)
                .description(description)
                .serviceLevelObjectives(buckets)
                .tags(tags)
                .register(registry);
    }

    @Override
    public void close() {
        registry.close();
    }
}
