package dev.dormouse.connector;

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

    /** A request that shall be read from elsewhere. */
    private static final class Reading {
        private final RemoteHandOver remote;
        private boolean ordered;

        private Reading(RemoteHandOver remote) {
            this.remote = remote;
        }
    }

    private final ConnectorConfig config;
    private final LongSupplier nanoClock;
    private final SideChannel.Opener opener;
    private final HeartbeatSchedule heartbeats;
    private final Map<String, Reading> readings = new HashMap<>();
    private final Set<String> unreadable = new HashSet<>();
    private final Set<String> held = new HashSet<>();
    private final List<ReadOrder> reads = new ArrayList<>();
    private final Set<String> inBatch = new LinkedHashSet<>();
    private final Set<String> notProcessed = new LinkedHashSet<>();
    private final Map<String, Double> leases = new HashMap<>();
    private @Nullable SideChannel sideChannel;
    private long epoch;

    PullScheduler(ConnectorConfig config, LongSupplier nanoClock, SideChannel.Opener opener) {
        this.config = config;
        this.opener = opener;
        this.nanoClock = nanoClock;
        this.heartbeats = new HeartbeatSchedule(config.heartbeatInterval());
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
        long usable = Math.min(capacity, request.promptTokens());
        if (remote.tokens() > 0) {
            usable = Math.min(usable, remote.tokens());
        }
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
            reads.add(order(request, reading.remote, blocks, localTokens, externalTokens));
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
        ConnectorStep step =
                new ConnectorStep(
                        reads,
                        inBatch,
                        notProcessed,
                        leases,
                        heartbeats.due(nowNanos),
                        nowNanos / 1e9);
        reads.clear();
        inBatch.clear();
        notProcessed.clear();
        leases.clear();
        return step;
    }

    @Override
    public void onReport(WorkerReport report) {
        held.removeAll(report.finishedSending());
        report.finishedReceiving().forEach(heartbeats::remove);
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
            reads.add(ReadOrder.notice(id, reading.remote.source()));
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
                    opener.open(
                            new SideChannelAddress(config.bindHost(), config.sideChannelPort()));
        }
        epoch++;
        String hash = config.factors().hash();
        Map<RankId, byte[]> served = new HashMap<>();
        for (RankPayload payload : payloads) {
            byte[] metadata = AgentMetadataCodec.encode(payload.metadata());
            served.put(
                    new RankId(payload.ppRank(), payload.tpRank()),
                    new HandshakePayload(hash, metadata, epoch, config.instanceId()).encode());
        }
        sideChannel.serve(served);
        LOG.log(
                System.Logger.Level.INFO,
                "published: engine={0} instance={1} epoch={2} ranks={3} address={4}:{5}",
                config.engineId(),
                config.instanceId(),
                epoch,
                served.size(),
                config.advertisedHost(),
                Integer.toString(sideChannel.port()));
    }

    @Override
    public void withdraw() {
        if (sideChannel != null) {
            sideChannel.serve(Map.of());
        }
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
        if (sideChannel != null) {
            sideChannel.close();
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
        try {
            Reading reading = new Reading(RemoteHandOver.read(params));
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

    private ReadOrder order(
            ConnectorRequest request,
            RemoteHandOver remote,
            int[] blocks,
            int localTokens,
            int externalTokens) {
        if (externalTokens == 0) {
            return ReadOrder.notice(request.id(), remote.source());
        }
        int first = localTokens / config.blockTokens();
        int end = blocksFor(localTokens + externalTokens);
        if (localTokens % config.blockTokens() != 0
                || externalTokens < 0
                || end > blocks.length
                || end > remote.blocks().size()) {
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
        return new ReadOrder(
                request.id(),
                remote.source(),
                Arrays.stream(blocks, first, end).boxed().toList(),
                remote.blocks(),
                localTokens,
                localTokens + externalTokens,
                true);
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
        if (hold) {
            double deadline = (nanoClock.getAsLong() + config.leaseDuration().toNanos()) / 1e9;
            leases.put(request.id(), deadline);
            held.add(request.id());
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
                        epoch);
        List<Integer> ids = Arrays.stream(blocks, 0, count).boxed().toList();
        return new HandOver(hold, new RemoteHandOver(here, ids, computedTokens).write());
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
