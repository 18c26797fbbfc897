package dev.dormouse.connector;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The scheduler's half of several connectors in one: vLLM's {@code MultiConnector}. A request is
 * loaded through the first that has something for it; all hold what they are asked to hold.
 */
final class MultiScheduler implements SchedulerConnector {
    private final List<SchedulerConnector> children;

    /** Which of them loads a request. */
    private final Map<String, Integer> chosen = new HashMap<>();

    private final Map<String, Integer> extraSends = new HashMap<>();

    MultiScheduler(List<SchedulerConnector> children) {
        this.children = List.copyOf(children);
        if (children.isEmpty()) {
            throw new ConnectorException("multi connector: it has no connectors");
        }
    }

    @Override
    public void onArrival(ConnectorRequest request) {
        children.forEach(child -> child.onArrival(request));
    }

    @Override
    public int externalTokens(ConnectorRequest request, int localTokens) {
        chosen.remove(request.id());
        int tokens = 0;
        for (int i = 0; i < children.size(); i++) {
            int offered = children.get(i).externalTokens(request, localTokens);
            if (offered > 0 && tokens == 0) {
                tokens = offered;
                chosen.put(request.id(), i);
            }
        }
        return tokens;
    }

    @Override
    public void onAllocated(
            ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
        int loading = externalTokens > 0 ? chosen.getOrDefault(request.id(), 0) : -1;
        for (int i = 0; i < children.size(); i++) {
            children.get(i)
                    .onAllocated(request, blocks, localTokens, i == loading ? externalTokens : 0);
        }
    }

    @Override
    public ConnectorStep step() {
        List<ConnectorStep> steps = children.stream().map(SchedulerConnector::step).toList();
        ConnectorStep step = ConnectorStep.of(steps, extraSends);
        extraSends.clear();
        return step;
    }

    @Override
    public void onReport(WorkerReport report) {
        if (report.children().size() == children.size()) {
            for (int i = 0; i < children.size(); i++) {
                children.get(i).onReport(report.children().get(i));
            }
        }
    }

    @Override
    public HandOver onFinished(
            ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
        chosen.remove(request.id());
        int holding = 0;
        ObjectNode merged = null;
        for (SchedulerConnector child : children) {
            HandOver handOver = child.onFinished(request, kind, blocks, computedTokens);
            holding += handOver.holdBlocks() ? 1 : 0;
            merged = merge(request.id(), merged, handOver.params());
        }
        if (holding > 1) {
            extraSends.put(request.id(), holding - 1);
        }
        return new HandOver(holding > 0, merged == null ? null : KvTransferParams.of(merged));
    }

    /** No client could tell which connector a key is of that two of them write. */
    private static @Nullable ObjectNode merge(
            String requestId, @Nullable ObjectNode merged, @Nullable KvTransferParams params) {
        if (params == null) {
            return merged;
        }
        ObjectNode all = merged == null ? JsonNodeFactory.instance.objectNode() : merged;
        params.toJson()
                .properties()
                .forEach(
                        entry -> {
                            if (all.has(entry.getKey())) {
                                throw new ConnectorException(
                                        "hand over: request="
                                                + requestId
                                                + ": two connectors write "
                                                + entry.getKey()
                                                + " of kv_transfer_params; only one of a multi"
                                                + " connector may hand requests over");
                            }
                            all.set(entry.getKey(), entry.getValue());
                        });
        return all;
    }

    /** Only one of them holds for a next turn: two would write the same parameters. */
    @Override
    public boolean endHold(String requestId) {
        return children.stream().anyMatch(child -> child.endHold(requestId));
    }

    @Override
    public void publish(List<RankPayload> payloads) {
        for (int i = 0; i < children.size(); i++) {
            int child = i;
            children.get(i)
                    .publish(payloads.stream().map(each -> each.children().get(child)).toList());
        }
    }

    @Override
    public void withdraw() {
        forAll("withdraw", SchedulerConnector::withdraw);
    }

    @Override
    public void revoke() {
        forAll("revoke", SchedulerConnector::revoke);
    }

    @Override
    public void drain(boolean draining) {
        children.forEach(child -> child.drain(draining));
    }

    /** Of the first: all publish together. */
    @Override
    public long epoch() {
        return children.getFirst().epoch();
    }

    @Override
    public int heldRequests() {
        return children.stream().mapToInt(SchedulerConnector::heldRequests).sum();
    }

    @Override
    public int sideChannelPort() {
        return children.getFirst().sideChannelPort();
    }

    @Override
    public void close() {
        forAll("close", SchedulerConnector::close);
    }

    private void forAll(String operation, Consumer<SchedulerConnector> action) {
        MultiConnector.forAll(operation, children, action);
    }
}
