package dev.dormouse.connector;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The scheduler's half of the pull connector: vLLM's {@code NixlPullConnectorScheduler}, and the
 * owner of the registration epoch.
 */
final class PullScheduler implements SchedulerConnector {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    /** More than any engine has requests. */
    private static final int MAX_WAITING_ORDERS = 1 << 16;

    /** A request that shall be read from elsewhere. */
    private static final class Reading {
        private final RemoteHandOver remote;
        private final double arrivedSeconds;
        private boolean ordered;

        private Reading(RemoteHandOver remote, double arrivedSeconds) {
            this.remote = remote;
            this.arrivedSeconds = arrivedSeconds;
        }
    }

    private final ConnectorConfig config;
    private final Surroundings surroundings;
    private final AutoCloseable ownedThreads;
    private final LongSupplier nanoClock;
    private final HeartbeatSchedule heartbeats;
    private final HoldBook holdBook;
    private final SideChannelDesk desk;
    private final Revoker revoker;
    private final HeldRequests held;
    private final Map<String, Reading> readings = new HashMap<>();
    private final Set<String> unreadable = new HashSet<>();
    private final List<ReadOrder> reads = new ArrayList<>();
    private final Set<String> inBatch = new LinkedHashSet<>();
    private final Set<String> notProcessed = new LinkedHashSet<>();
    private @Nullable SideChannel sideChannel;
    private long epoch;
    private boolean draining;

    /**
     * A scheduler's half that has published nothing.
     *
     * @param surroundings its clock stamps leases and the side channel's answers
     * @param ownedThreads closed with the scheduler's half
     */
    PullScheduler(ConnectorConfig config, Surroundings surroundings, AutoCloseable ownedThreads) {
        this.epoch = surroundings.epochBase();
        this.config = config;
        this.surroundings = surroundings;
        this.ownedThreads = ownedThreads;
        this.nanoClock = surroundings.nanoClock();
        this.heartbeats = new HeartbeatSchedule(config.leaseDuration());
        this.holdBook = new HoldBook(config.instanceId(), nanoClock);
        this.desk = new SideChannelDesk(config.instanceId(), nanoClock, holdBook);
        this.revoker = new Revoker(surroundings.dialer(), surroundings.threads());
        this.held = new HeldRequests(config.leaseDuration(), config.holdLimit(), holdBook);
    }

    @Override
    public void onArrival(ConnectorRequest request) {
        Reading reading = track(request);
        if (reading != null && !reading.ordered) {
            heartbeats.add(request.id(), reading.remote.source());
        }
    }

    @Override
    public int externalTokens(ConnectorRequest request, int localTokens) {
        Reading reading = track(request);
        if (reading == null || reading.ordered) {
            return 0;
        }
        RemoteHandOver remote = reading.remote;
        long capacity = (long) remote.blocks().size() * config.blockTokens();
        long usable =
                otherPrompt(remote, request) == null
                        ? Math.min(capacity, request.promptTokens())
                        : request.promptTokens();
        return (int) Math.max(0, usable - localTokens);
    }

    @Override
    public void onAllocated(
            ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
        KvTransferParams params = request.params();
        if (params == null) {
            return;
        }
        Reading reading = track(request);
        if (reading != null && !reading.ordered) {
            order(request, reading, blocks, localTokens, externalTokens);
            reading.ordered = true;
            if (externalTokens == 0) {
                heartbeats.remove(request.id());
            }
        }
        if (params.remoteDecode()) {
            inBatch.add(request.id());
        }
    }

    @Override
    public ConnectorStep step() {
        long nowNanos = nanoClock.getAsLong();
        revoker.progress(nowNanos);
        ConnectorStep step =
                new ConnectorStep(
                        reads,
                        inBatch,
                        notProcessed,
                        held.takeLeases(nowNanos),
                        heartbeats.due(nowNanos),
                        nowNanos / 1e9,
                        draining,
                        revoker.isComplete() ? held.ids() : Set.of(),
                        desk.revocations().take(),
                        sideChannelPort(),
                        PushStep.NONE,
                        List.of(),
                        Map.of());
        reads.clear();
        inBatch.clear();
        notProcessed.clear();
        return step;
    }

    @Override
    public void onReport(WorkerReport report) {
        held.onReport(report);
        desk.revocations().done(report.revoked());
        report.finishedReceiving().forEach(heartbeats::remove);
        report.abandonedReceiving().forEach(heartbeats::remove);
    }

    @Override
    public HandOver onFinished(
            ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
        String id = request.id();
        Reading reading = track(request);
        readings.remove(id);
        unreadable.remove(id);
        heartbeats.remove(id);
        KvTransferParams params = request.params();
        if (params == null) {
            return HandOver.NONE;
        }
        if (reading != null && !reading.ordered) {
            tell(id, reading.remote);
            return HandOver.NONE;
        }
        if (!params.remoteDecode()) {
            return HandOver.NONE;
        }
        return switch (kind) {
            case LENGTH, STOPPED -> handOver(request, blocks, computedTokens);
            case ABORTED, FAILED -> {
                notProcessed.add(id);
                yield HandOver.NONE;
            }
        };
    }

    @Override
    public void publish(List<RankPayload> payloads) {
        requireOnePerRank(payloads);
        if (sideChannel == null) {
            sideChannel =
                    surroundings
                            .opener()
                            .open(
                                    new SideChannelAddress(
                                            config.bindHost(), config.sideChannelPort()),
                                    desk);
        }
        revoker.end();
        epoch++;
        holdBook.begin(epoch);
        String hash = config.factors().hash();
        Map<RankId, byte[]> served = new HashMap<>();
        for (RankPayload payload : payloads) {
            byte[] metadata = AgentMetadataCodec.encode(payload.metadata());
            served.put(
                    new RankId(payload.ppRank(), payload.tpRank()),
                    new HandshakePayload(hash, metadata, epoch, config.instanceId()).encode());
        }
        if (held.size() == 0) { // else the pages stayed, and can be read through older payloads
            desk.forgetReaders();
        }
        desk.serve(epoch, served);
        LOG.log(
                System.Logger.Level.INFO,
                "published: engine={0} instance={1} epoch={2} ranks={3} address={4}:{5}",
                config.engineId(),
                config.instanceId(),
                Long.toString(epoch),
                served.size(),
                config.advertisedHost(),
                Integer.toString(sideChannel.port()));
    }

    @Override
    public void withdraw() {
        holdBook.begin(epoch);
        desk.withdraw();
    }

    @Override
    public void revoke() {
        withdraw();
        if (held.size() > 0 && !revoker.isActive()) {
            revoker.begin(
                    new Revocation(config.engineId(), config.instanceId(), epoch, anyRound()),
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
    }

    @Override
    public long epoch() {
        return epoch;
    }

    @Override
    public int heldRequests() {
        return held.size();
    }

    @Override
    public int sideChannelPort() {
        return sideChannel == null ? 0 : sideChannel.port();
    }

    @Override
    public void close() {
        try (AutoCloseable _ = ownedThreads) {
            if (sideChannel != null) {
                sideChannel.close();
            }
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new ConnectorException("close: " + e.getMessage(), e);
        }
    }

    /** The request's remote part, or null if there is none that can be understood. */
    private @Nullable Reading track(ConnectorRequest request) {
        KvTransferParams params = request.params();
        String id = request.id();
        if (params == null || !params.remotePrefill() || unreadable.contains(id)) {
            return null;
        }
        Reading known = readings.get(id);
        if (known != null) {
            return known;
        }
        String mode = params.transferMode();
        if (mode != null && !mode.equals(config.factors().transferMode())) {
            unreadable.add(id);
            LOG.log(
                    System.Logger.Level.INFO,
                    "not for this connector, whose transfer mode is {0}: request={1} mode={2}",
                    config.factors().transferMode(),
                    id,
                    Excerpt.of(mode));
            return null;
        }
        try {
            Reading reading = new Reading(RemoteHandOver.read(params), nanoClock.getAsLong() / 1e9);
            readings.put(id, reading);
            return reading;
        } catch (ConnectorException e) {
            unreadable.add(id);
            LOG.log(
                    System.Logger.Level.WARNING,
                    "no read: {0}; the prompt is computed here: request={1}",
                    e.getMessage(),
                    id);
            return null;
        }
    }

    /**
     * Why the producer's blocks cannot be this request's, or null. Another prompt was tokenized
     * differently, or changed on the way, or its parameters were taken for this one's.
     */
    private static @Nullable String otherPrompt(RemoteHandOver remote, ConnectorRequest request) {
        String hash = request.promptHash();
        if (hash != null && remote.promptHash() != null && !hash.equals(remote.promptHash())) {
            return "the prompt has other tokens here than it had at the producer";
        }
        int there = remote.promptTokens() > 0 ? remote.promptTokens() : remote.tokens();
        return there == 0 || there == request.promptTokens()
                ? null
                : "the prompt has "
                        + request.promptTokens()
                        + " tokens here and had "
                        + there
                        + " at the producer";
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
        RemoteHandOver remote = reading.remote;
        String refusal = otherPrompt(remote, request);
        if (externalTokens == 0 || refusal != null) {
            tell(request.id(), remote);
        }
        if (externalTokens == 0) {
            return;
        }
        int first = localTokens / config.blockTokens();
        int end = blocksFor(localTokens + externalTokens);
        if (localTokens % config.blockTokens() != 0
                || externalTokens < 0
                || end > blocks.length
                || (refusal == null && end > remote.blocks().size())) {
            throw new IllegalArgumentException(
                    "allocated: request="
                            + request.id()
                            + " blocks="
                            + blocks.length
                            + " remoteBlocks="
                            + remote.blocks().size()
                            + " localTokens="
                            + localTokens
                            + " externalTokens="
                            + externalTokens
                            + " blockTokens="
                            + config.blockTokens());
        }
        reads.add(
                new ReadOrder(
                        request.id(),
                        remote.source(),
                        Arrays.stream(blocks, first, end).boxed().toList(),
                        refusal == null ? remote.blocks() : List.of(),
                        localTokens,
                        localTokens + externalTokens,
                        true,
                        reading.arrivedSeconds,
                        refusal));
    }

    private HandOver handOver(ConnectorRequest request, int[] blocks, int computedTokens) {
        if (sideChannel == null) {
            throw new IllegalStateException(
                    "hand over: request=" + request.id() + " finished before the first publish");
        }
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
        boolean hold = count > 0;
        RemoteLease lease = RemoteLease.UNKNOWN;
        if (hold) {
            lease = held.hold(request.id(), nanoClock.getAsLong());
        } else {
            notProcessed.add(request.id());
        }
        RemoteSource here =
                new RemoteSource(
                        config.engineId(),
                        config.instanceId(),
                        request.id(),
                        config.advertisedHost(),
                        sideChannel.port(),
                        config.tpSize(),
                        1,
                        epoch,
                        lease);
        List<Integer> ids = Arrays.stream(blocks, 0, count).boxed().toList();
        return new HandOver(
                hold,
                new RemoteHandOver(
                                here,
                                ids,
                                computedTokens,
                                request.promptTokens(),
                                request.promptHash())
                        .write(config.factors().transferMode()));
    }

    private void requireOnePerRank(List<RankPayload> payloads) {
        Set<Integer> ranks = new HashSet<>();
        for (RankPayload payload : payloads) {
            AgentMetadata metadata = payload.metadata();
            if (payload.ppRank() != 0
                    || payload.tpRank() < 0
                    || payload.tpRank() >= config.tpSize()
                    || !ranks.add(payload.tpRank())
                    || !metadata.engineId().equals(config.engineId())
                    || metadata.blockTokens() != config.blockTokens()) {
                throw new ConnectorException(
                        "publish: payload of pp rank "
                                + payload.ppRank()
                                + " tp rank "
                                + payload.tpRank()
                                + " engine "
                                + metadata.engineId()
                                + " blockTokens "
                                + metadata.blockTokens()
                                + " does not belong to engine "
                                + config.engineId()
                                + " tpSize "
                                + config.tpSize()
                                + " blockTokens "
                                + config.blockTokens());
            }
        }
        if (ranks.size() != config.tpSize()) {
            throw new ConnectorException(
                    "publish: "
                            + ranks.size()
                            + " payloads for tpSize "
                            + config.tpSize()
                            + "; every rank publishes at once");
        }
    }

    private int blocksFor(int tokens) {
        return Math.ceilDiv(tokens, config.blockTokens());
    }
}
