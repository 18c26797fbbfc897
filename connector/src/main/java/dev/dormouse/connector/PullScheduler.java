package dev.dormouse.connector;

import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The scheduler's half of the pull connector: vLLM's {@code NixlPullConnectorScheduler}, which here
 * owns the registration epoch.
 */
final class PullScheduler implements SchedulerConnector {
    /** More than any engine has requests. */
    private static final int MAX_WAITING_ORDERS = 1 << 16;

    private final ConnectorConfig config;
    private final AutoCloseable ownedThreads;
    private final LongSupplier nanoClock;
    private final HeartbeatSchedule heartbeats;
    private final HoldBook holdBook;
    private final SideChannelDesk desk;
    private final Publication publication;
    private final Revoker revoker;
    private final HeldRequests held;
    private final Readings readings;
    private final List<ReadOrder> reads = new ArrayList<>();
    private final Set<String> inBatch = new LinkedHashSet<>();
    private final Set<String> notProcessed = new LinkedHashSet<>();
    private boolean draining;

    /**
     * A scheduler's half that has published nothing.
     *
     * @param surroundings its clock stamps leases and the side channel's answers
     * @param ownedThreads closed with the scheduler's half
     */
    PullScheduler(ConnectorConfig config, Surroundings surroundings, AutoCloseable ownedThreads) {
        this.config = config;
        this.ownedThreads = ownedThreads;
        this.nanoClock = surroundings.nanoClock();
        this.heartbeats = new HeartbeatSchedule(config.leaseDuration());
        this.holdBook = new HoldBook(config.instanceId(), nanoClock);
        this.desk =
                new SideChannelDesk(config.engineId(), config.instanceId(), nanoClock, holdBook);
        this.publication = new Publication(config, surroundings, desk, holdBook);
        this.revoker = new Revoker(surroundings.dialer(), surroundings.threads());
        this.held = new HeldRequests(config.leaseDuration(), config.holdLimit(), holdBook);
        this.readings = new Readings(config, nanoClock);
    }

    /** No lease is renewed that was given for a next turn. */
    @Override
    public void onArrival(ConnectorRequest request) {
        Reading reading = readings.of(request);
        if (reading != null && !reading.ordered() && !reading.fromDecoder()) {
            heartbeats.add(request.id(), reading.remote().source());
        }
    }

    @Override
    public int externalTokens(ConnectorRequest request, int localTokens) {
        Reading reading = readings.of(request);
        if (reading == null || reading.ordered()) {
            return 0;
        }
        ReadBack readBack = config.readBack();
        return reading.externalTokens(
                request,
                localTokens,
                config.blockTokens(),
                readBack == null ? 0 : readBack.recomputeThreshold());
    }

    @Override
    public void onAllocated(
            ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
        KvTransferParams params = request.params();
        if (params == null) {
            return;
        }
        Reading reading = readings.of(request);
        if (reading != null && !reading.ordered()) {
            order(request, reading, blocks, localTokens, externalTokens);
            reading.markOrdered();
            if (externalTokens == 0) {
                heartbeats.remove(request.id());
            }
        }
        if (params.remoteDecode() || holdsForNextTurn(reading)) {
            inBatch.add(request.id());
        }
    }

    /** Whether this engine, which decodes a request, holds it afterwards. */
    private boolean holdsForNextTurn(@Nullable Reading reading) {
        return config.readBack() != null && reading != null && !reading.fromDecoder();
    }

    @Override
    public ConnectorStep step() {
        long nowNanos = nanoClock.getAsLong();
        revoker.progress(nowNanos);
        if (draining) {
            held.endEarly(nowNanos);
        }
        ConnectorStep step =
                new ConnectorStep(
                        reads,
                        inBatch,
                        notProcessed,
                        held.takeLeases(nowNanos),
                        heartbeats.due(nowNanos),
                        nowNanos / 1e9,
                        draining && desk.anonymousReaders() == 0,
                        revoker.isComplete() ? held.ids() : held.endedEarly(),
                        desk.revocations().take(),
                        sideChannelPort(),
                        new PushStep(
                                publication.epoch(),
                                Map.of(),
                                Set.of(),
                                desk.cancellations().take()),
                        List.of());
        reads.clear();
        inBatch.clear();
        notProcessed.clear();
        return step;
    }

    @Override
    public void onReport(WorkerReport report) {
        held.onReport(report);
        desk.revocations().done(report.revoked());
        desk.cancellations().done(report.revoked());
        report.finishedReceiving().forEach(heartbeats::remove);
        report.abandonedReceiving().forEach(heartbeats::remove);
    }

    /** Who waits for a request may ask for it before it has ended. */
    void expect(ConnectorRequest request) {
        holdBook.expect(request.id());
    }

    @Override
    public HandOver onFinished(
            ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
        String id = request.id();
        Reading reading = readings.of(request);
        readings.forget(id);
        heartbeats.remove(id);
        HandOver handOver = handOver(request, reading, kind, blocks, computedTokens);
        if (!handOver.holdBlocks()) {
            holdBook.end(id);
        }
        return handOver;
    }

    private HandOver handOver(
            ConnectorRequest request,
            @Nullable Reading reading,
            FinishKind kind,
            int[] blocks,
            int computedTokens) {
        String id = request.id();
        KvTransferParams params = request.params();
        if (params == null) {
            return HandOver.NONE;
        }
        // Another prefill engine may be asked next for what a decode engine holds.
        if (reading != null && !reading.ordered() && !reading.fromDecoder()) {
            tell(id, reading.remote());
            return HandOver.NONE;
        }
        boolean prefilled = params.remoteDecode();
        if (!prefilled && !holdsForNextTurn(reading)) {
            return HandOver.NONE;
        }
        return switch (kind) {
            case LENGTH, STOPPED ->
                    prefilled
                            ? handOver(request, blocks, computedTokens)
                            : keepForNextTurn(
                                    request,
                                    Objects.requireNonNull(reading).remote().source(),
                                    blocks,
                                    computedTokens);
            case ABORTED, FAILED -> {
                notProcessed.add(id);
                yield HandOver.NONE;
            }
        };
    }

    @Override
    public boolean endHold(String requestId) {
        return held.endEarly(requestId, nanoClock.getAsLong());
    }

    @Override
    public void publish(List<RankPayload> payloads) {
        // What is held outlives an epoch only if the pages stayed: older payloads lead to it.
        publication.publish(payloads, held.size() == 0);
        revoker.end();
    }

    @Override
    public void withdraw() {
        publication.withdraw();
    }

    @Override
    public void revoke() {
        withdraw();
        if (held.size() > 0 && !revoker.isActive()) {
            revoker.begin(
                    new Revocation(
                            config.engineId(),
                            config.instanceId(),
                            publication.epoch(),
                            anyRound()),
                    desk.readers(),
                    desk.anonymousReaders() == 0,
                    nanoClock.getAsLong());
        }
    }

    /** Nobody can say before it is asked that it is done. */
    private static long anyRound() {
        return new SecureRandom().nextLong(Long.MAX_VALUE);
    }

    @Override
    public void drain(boolean begins) {
        draining = begins;
        if (begins) {
            held.endEarly(nanoClock.getAsLong());
        }
    }

    @Override
    public long epoch() {
        return publication.epoch();
    }

    @Override
    public int heldRequests() {
        return held.size();
    }

    @Override
    public int sideChannelPort() {
        return publication.port();
    }

    @Override
    public void close() {
        try (AutoCloseable _ = ownedThreads) {
            publication.close();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new ConnectorException("close: " + e.getMessage(), e);
        }
    }

    /** Has the producer told that nothing is read; if too many wait to be told, its lease ends. */
    private void tell(String requestId, RemoteHandOver remote) {
        if (reads.size() < MAX_WAITING_ORDERS) {
            reads.add(ReadOrder.notice(requestId, remote.source()));
        }
    }

    private void order(
            ConnectorRequest request,
            Reading reading,
            int[] blocks,
            int localTokens,
            int externalTokens) {
        if (externalTokens == 0 || reading.refusal() != null) {
            tell(request.id(), reading.remote());
        }
        if (externalTokens == 0) {
            return;
        }
        reads.add(
                reading.order(request, blocks, localTokens, externalTokens, config.blockTokens()));
    }

    private HandOver handOver(ConnectorRequest request, int[] blocks, int computedTokens) {
        List<Integer> ids = filled(request, blocks, computedTokens);
        boolean hold = !ids.isEmpty();
        RemoteLease lease = RemoteLease.UNKNOWN;
        if (hold) {
            lease = held.hold(request.id(), nanoClock.getAsLong());
        } else {
            notProcessed.add(request.id());
        }
        RemoteHandOver handOver =
                new RemoteHandOver(
                        publication.source(request.id(), lease),
                        ids,
                        computedTokens,
                        request.promptTokens(),
                        request.hashes().of(request.promptTokens()));
        return new HandOver(hold, handOver.write(config.factors().transferMode()));
    }

    /**
     * Holds what was decoded. A prefill engine of this product's claims what it reads, so what is
     * held may go when its room is needed. One of vLLM's reads by the deadline that it was told:
     * where the prompt came from such an engine, that is the hold's end.
     */
    private HandOver keepForNextTurn(
            ConnectorRequest request, RemoteSource prefiller, int[] blocks, int computedTokens) {
        List<Integer> ids = filled(request, blocks, computedTokens);
        if (ids.isEmpty() || draining) {
            notProcessed.add(request.id());
            return HandOver.NONE;
        }
        Duration duration = Objects.requireNonNull(config.readBack()).holdDuration();
        Duration usual = config.leaseDuration();
        boolean whole = prefiller.instanceId() == null || usual.compareTo(duration) > 0;
        Duration promised = whole ? duration : usual;
        long nowNanos = nanoClock.getAsLong();
        RemoteLease lease = held.holdForNextTurn(request.id(), nowNanos, duration, promised);
        RemoteHandOver handOver =
                new RemoteHandOver(
                        publication.source(request.id(), lease),
                        ids,
                        computedTokens,
                        0,
                        request.hashes().of(computedTokens));
        return new HandOver(
                true,
                handOver.writeForNextTurn(
                        config.factors().transferMode(), (nowNanos + promised.toNanos()) / 1e9));
    }

    /** The blocks that hold the KV of a request's tokens. */
    private List<Integer> filled(ConnectorRequest request, int[] blocks, int computedTokens) {
        int count = blocksFor(computedTokens);
        if (count > blocks.length) {
            throw new IllegalArgumentException(
                    "hand over: request="
                            + request.id()
                            + " has "
                            + blocks.length
                            + " blocks for "
                            + computedTokens
                            + " tokens");
        }
        return Arrays.stream(blocks, 0, count).boxed().toList();
    }

    private int blocksFor(int tokens) {
        return Math.ceilDiv(tokens, config.blockTokens());
    }
}
