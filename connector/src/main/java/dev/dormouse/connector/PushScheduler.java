package dev.dormouse.connector;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The scheduler's half of the push connector: vLLM's {@code NixlPushConnectorScheduler}. Holds,
 * leases, epochs and the side channel are the pull connector's; in addition, the ranks are told the
 * blocks of what is held, and which requests are not waited for any more.
 */
final class PushScheduler implements SchedulerConnector {
    private final ConnectorConfig config;
    private final PullScheduler base;
    private final Map<String, List<Integer>> handOvers = new HashMap<>();
    private final Set<String> waiting = new HashSet<>();
    private final Set<String> cancelled = new HashSet<>();

    PushScheduler(ConnectorConfig config, Surroundings surroundings, AutoCloseable ownedThreads) {
        this.config = config;
        this.base = new PullScheduler(config, surroundings, ownedThreads);
    }

    @Override
    public void onArrival(ConnectorRequest request) {
        base.onArrival(request);
    }

    /**
     * Of a prompt's blocks a holder writes the last ones, as many as are asked for: asked for fewer
     * than the rest, since a hand-over names fewer, it would write wrong ones.
     */
    @Override
    public int externalTokens(ConnectorRequest request, int localTokens) {
        int tokens = base.externalTokens(request, localTokens);
        return localTokens + tokens < request.promptTokens() ? 0 : tokens;
    }

    @Override
    public void onAllocated(
            ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
        base.onAllocated(request, blocks, localTokens, externalTokens);
        if (externalTokens > 0) {
            waiting.add(request.id());
        }
        if (request.params() != null && request.params().remoteDecode()) {
            base.expect(request);
        }
    }

    @Override
    public ConnectorStep step() {
        ConnectorStep step = base.step();
        step = step.with(new PushStep(base.epoch(), handOvers, cancelled, step.push().takenBack()));
        handOvers.clear();
        cancelled.clear();
        return step;
    }

    @Override
    public void onReport(WorkerReport report) {
        base.onReport(report);
        waiting.removeAll(report.finishedReceiving());
        waiting.removeAll(report.abandonedReceiving());
    }

    @Override
    public HandOver onFinished(
            ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
        if (waiting.remove(request.id())) {
            cancelled.add(request.id());
        }
        HandOver handOver = base.onFinished(request, kind, blocks, computedTokens);
        if (handOver.holdBlocks()) {
            // A reader wants the prompt's end: what was generated behind it is not its business.
            int tokens = Math.min(computedTokens, request.promptTokens());
            int count = Math.ceilDiv(tokens, config.blockTokens());
            handOvers.put(request.id(), Arrays.stream(blocks, 0, count).boxed().toList());
        }
        return handOver;
    }

    @Override
    public boolean endHold(String requestId) {
        return base.endHold(requestId);
    }

    @Override
    public void publish(List<RankPayload> payloads) {
        base.publish(payloads);
    }

    /** What the ranks have not been told yet, they will not be: its pages are about to go. */
    @Override
    public void withdraw() {
        handOvers.clear();
        base.withdraw();
    }

    @Override
    public void revoke() {
        base.revoke();
    }

    @Override
    public void drain(boolean draining) {
        base.drain(draining);
    }

    @Override
    public long epoch() {
        return base.epoch();
    }

    @Override
    public int heldRequests() {
        return base.heldRequests();
    }

    @Override
    public int sideChannelPort() {
        return base.sideChannelPort();
    }

    @Override
    public void close() {
        base.close();
    }
}
