package dev.dormouse.connector;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The scheduler's half of several connectors in one: vLLM's {@code MultiConnector}. A request's
 * remote part is the business of the first that has something for it, from the request's arrival to
 * its end: two that knew of it would each renew its lease, and one would tell its holder that
 * nobody reads while the other does. Holding requests is the business of one alone.
 */
final class MultiScheduler implements SchedulerConnector {
    private final List<SchedulerConnector> children;

    /** Which of them a request's remote part is for. */
    private final Map<String, Integer> loaders = new HashMap<>();

    MultiScheduler(List<SchedulerConnector> children) {
        this.children = List.copyOf(children);
        if (children.isEmpty()) {
            throw new ConnectorException("multi connector: it has no connectors");
        }
    }

    @Override
    public void onArrival(ConnectorRequest request) {
        for (int i = 0; i < children.size(); i++) {
            if (children.get(i).externalTokens(request, 0) > 0) {
                loaders.put(request.id(), i);
                break;
            }
        }
        for (int i = 0; i < children.size(); i++) {
            children.get(i).onArrival(asSeenBy(i, request));
        }
    }

    /** For all but its loader, nobody holds a request. */
    private ConnectorRequest asSeenBy(int child, ConnectorRequest request) {
        Integer loader = loaders.get(request.id());
        return loader == null || loader == child ? request : request.withoutRemotePrefill();
    }

    @Override
    public int externalTokens(ConnectorRequest request, int localTokens) {
        Integer loader = loaders.get(request.id());
        return loader == null ? 0 : children.get(loader).externalTokens(request, localTokens);
    }

    @Override
    public void onAllocated(
            ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
        int loader = loaders.getOrDefault(request.id(), -1);
        for (int i = 0; i < children.size(); i++) {
            int external = i == loader ? externalTokens : 0;
            children.get(i).onAllocated(asSeenBy(i, request), blocks, localTokens, external);
        }
    }

    @Override
    public ConnectorStep step() {
        return ConnectorStep.of(children.stream().map(SchedulerConnector::step).toList());
    }

    @Override
    public void onReport(WorkerReport report) {
        if (report.children().size() == children.size()) {
            for (int i = 0; i < children.size(); i++) {
                children.get(i).onReport(report.children().get(i));
            }
        }
    }

    /** No client could tell whose the parameters are, if two connectors wrote some. */
    @Override
    public HandOver onFinished(
            ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
        HandOver only = HandOver.NONE;
        for (int i = 0; i < children.size(); i++) {
            HandOver each =
                    children.get(i).onFinished(asSeenBy(i, request), kind, blocks, computedTokens);
            if (!only.equals(HandOver.NONE) && !each.equals(HandOver.NONE)) {
                throw new ConnectorException(
                        "hand over: request="
                                + request.id()
                                + ": two connectors hand it over; only one of a multi connector"
                                + " may");
            }
            only = each.equals(HandOver.NONE) ? only : each;
        }
        loaders.remove(request.id());
        return only;
    }

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
