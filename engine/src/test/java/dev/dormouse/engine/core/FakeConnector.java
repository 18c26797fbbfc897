package dev.dormouse.engine.core;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.dormouse.connector.AgentMetadata;
import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.ConnectorStep;
import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.HandOver;
import dev.dormouse.connector.KvCacheRegions;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.PushStep;
import dev.dormouse.connector.RankPayload;
import dev.dormouse.connector.ReadOrder;
import dev.dormouse.connector.ReleaseTimeoutException;
import dev.dormouse.connector.RemoteSource;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.transport.TransportMetadata;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A connector whose other engines are made up: the test says when a read ends and how, and when a
 * held request was read. A good read writes the K and V that the prompt's producer would have
 * computed; a failed one leaves noise.
 */
final class FakeConnector {
    /** Calls that concern sleep, in order, such as {@code release 0}. */
    final List<String> calls = new ArrayList<>();

    /** Requests that ended, with the tokens whose K and V their blocks held. */
    final Map<String, Integer> finished = new LinkedHashMap<>();

    final Map<String, FinishKind> finishKinds = new HashMap<>();
    final Map<String, int[]> finishBlocks = new HashMap<>();

    /** Local tokens and external tokens at each allocation. */
    final Map<String, List<Integer>> allocations = new LinkedHashMap<>();

    /** Reads that were ordered and not ended yet, by the engine's id. */
    final Map<String, ReadOrder> reads = new LinkedHashMap<>();

    final Set<String> held = new LinkedHashSet<>();
    final List<Rank> ranks = new ArrayList<>();
    final Scheduling scheduling = new Scheduling();

    /** Ends each read in the poll after its order. */
    boolean readsEndAtOnce;

    /** Stands in the reasons of reads that fail. */
    static final String PEER = "10.1.2.3:5600";

    boolean failReads;

    /** Other engines hold no more than this of a prompt. */
    int maxExternalTokens = Integer.MAX_VALUE;

    /** Held requests that may end early, and then those that were told to. */
    final Set<String> endable = new HashSet<>();

    final List<String> toldToEnd = new ArrayList<>();
    boolean draining;
    boolean failPublish;

    /** The arrival of a request whose id begins so fails. */
    @Nullable String failArrivalOf;

    boolean failFinish;
    volatile boolean failPoll;

    private final Map<String, List<Integer>> prompts = new HashMap<>();
    private final Map<String, List<Integer>> promptsById = new HashMap<>();

    FakeConnector(int ranks) {
        for (int rank = 0; rank < ranks; rank++) {
            this.ranks.add(new Rank(rank));
        }
    }

    ConnectorHalves halves() {
        return new ConnectorHalves(scheduling, List.copyOf(ranks));
    }

    /** Parameters of a request whose prompt another engine holds. */
    KvTransferParams remotePrefill(List<Integer> prompt) {
        String producer = "p" + prompts.size();
        prompts.put(producer, prompt);
        return KvTransferParams.of(
                JsonNodeFactory.instance
                        .objectNode()
                        .put("do_remote_prefill", true)
                        .put("remote_request_id", producer));
    }

    /** The same if that engine also tells the first token, chosen like this. */
    KvTransferParams remotePrefill(
            List<Integer> prompt, SamplingParameters sampling, int firstToken) {
        KvTransferParams params =
                KvTransferParams.of(
                        remotePrefill(prompt).toJson().put("remote_prompt_hash", "the prompt's"));
        return FirstToken.of(
                        new GenerationRequest("p", prompt, sampling, remoteDecode()),
                        HashModel.VOCABULARY)
                .addTo(params, firstToken);
    }

    /** Parameters of a request that another engine will decode. */
    static KvTransferParams remoteDecode() {
        return KvTransferParams.of(
                JsonNodeFactory.instance.objectNode().put("do_remote_decode", true));
    }

    /** The engine's id of the only request whose id begins so. */
    static String idOf(Set<String> ids, String requestId) {
        return ids.stream()
                .filter(id -> id.startsWith(requestId + "-"))
                .findFirst()
                .orElseThrow(() -> new AssertionError(requestId + " is not in " + ids));
    }

    /** Ends a read on every rank. */
    void endRead(String id, boolean good) {
        ranks.forEach(rank -> rank.endRead(id, good));
    }

    /** Every rank says that a read has failed while its transfer goes on. */
    void abandonRead(String id) {
        ranks.forEach(rank -> rank.abandoned.add(id));
    }

    /** Every rank says that the held request was read. */
    void endHold(String id) {
        ranks.forEach(rank -> rank.sent.add(id));
    }

    /** The scheduler's half. */
    final class Scheduling implements SchedulerConnector {
        private final Set<String> processed = new HashSet<>();
        private List<ReadOrder> orders = new ArrayList<>();
        private long epoch;
        private boolean closed;

        @Override
        public void onArrival(ConnectorRequest request) {
            if (failArrivalOf != null && request.id().startsWith(failArrivalOf)) {
                throw new AssertionError("arrival: made to fail");
            }
            if (request.params() != null && request.params().remotePrefill()) {
                String producer = request.params().toJson().path("remote_request_id").asText();
                promptsById.put(request.id(), prompts.getOrDefault(producer, List.of()));
            }
        }

        @Override
        public int externalTokens(ConnectorRequest request, int localTokens) {
            int held = Math.min(request.promptTokens(), maxExternalTokens);
            return wantsRead(request) ? Math.max(0, held - localTokens) : 0;
        }

        @Override
        public void onAllocated(
                ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
            allocations.put(request.id(), List.of(localTokens, externalTokens));
            if (externalTokens > 0) {
                List<Integer> table = new ArrayList<>();
                for (int block : blocks) {
                    table.add(block);
                }
                ReadOrder order =
                        new ReadOrder(
                                request.id(),
                                new RemoteSource("peer", null, "p", "localhost", 1, 1, 1, 1),
                                table,
                                List.of(localTokens),
                                localTokens,
                                localTokens + externalTokens,
                                true);
                orders.add(order);
                reads.put(request.id(), order);
            }
            processed.add(request.id());
        }

        private boolean wantsRead(ConnectorRequest request) {
            return request.params() != null
                    && request.params().remotePrefill()
                    && !processed.contains(request.id());
        }

        @Override
        public ConnectorStep step() {
            List<ReadOrder> taken = orders;
            orders = new ArrayList<>();
            return new ConnectorStep(
                    taken,
                    Set.of(),
                    Set.of(),
                    Map.of(),
                    List.of(),
                    0,
                    false,
                    Set.of(),
                    List.of(),
                    0,
                    PushStep.NONE,
                    List.of());
        }

        @Override
        public void onReport(WorkerReport report) {
            held.removeAll(report.finishedSending());
        }

        @Override
        public HandOver onFinished(
                ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
            if (failFinish) {
                throw new IllegalStateException("finish: made to fail");
            }
            finished.put(request.id(), computedTokens);
            finishKinds.put(request.id(), kind);
            finishBlocks.put(request.id(), blocks);
            boolean handsOver =
                    request.params() != null
                            && request.params().remoteDecode()
                            && (kind == FinishKind.LENGTH || kind == FinishKind.STOPPED);
            if (!handsOver) {
                return HandOver.NONE;
            }
            held.add(request.id());
            return new HandOver(
                    true,
                    KvTransferParams.of(
                            JsonNodeFactory.instance
                                    .objectNode()
                                    .put("do_remote_prefill", true)
                                    .put("remote_request_id", request.id())));
        }

        @Override
        public boolean endHold(String requestId) {
            if (endable.contains(requestId)) {
                toldToEnd.add(requestId);
                return true;
            }
            return false;
        }

        @Override
        public void publish(List<RankPayload> payloads) {
            if (failPublish) {
                throw new IllegalStateException("publish: made to fail");
            }
            epoch++;
            calls.add("publish " + payloads.size());
        }

        @Override
        public void withdraw() {
            calls.add("withdraw");
        }

        @Override
        public void revoke() {
            calls.add("revoke");
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
            return 0;
        }

        @Override
        public void close() {
            closed = true;
        }

        boolean isClosed() {
            return closed;
        }
    }

    /** One rank's half. */
    final class Rank implements WorkerConnector {
        boolean failPrepare;
        boolean failRelease;
        boolean failRestore;
        boolean isClosed;
        final Set<String> sent = new HashSet<>();
        final Set<String> received = new HashSet<>();
        final Set<String> failed = new HashSet<>();
        final Set<String> abandoned = new HashSet<>();
        int polls;
        int steps;
        private final int rank;
        private @Nullable KvCacheRegions regions;
        private @Nullable Runnable wake;
        private boolean released;

        Rank(int rank) {
            this.rank = rank;
        }

        boolean canWake() {
            return wake != null;
        }

        @Override
        public void wakeWith(Runnable waking) {
            wake = waking;
        }

        /** Ends the read on this rank, and writes what it brought. */
        void endRead(String id, boolean good) {
            ReadOrder order = reads.get(id);
            if (order == null || regions == null) {
                throw new AssertionError("no read of " + id + " in " + reads.keySet());
            }
            int[] table = order.localBlocks().stream().mapToInt(Integer::intValue).toArray();
            int from = order.remoteBlocks().getFirst();
            List<Integer> prompt = promptsById.getOrDefault(id, List.of());
            prompt = prompt.subList(0, Math.min(prompt.size(), maxExternalTokens));
            for (int layer = 0; layer < regions.regions().size(); layer++) {
                KvCacheRegions.Region region = regions.regions().get(layer);
                MemorySegment cache =
                        MemorySegment.ofAddress(region.address())
                                .reinterpret(region.blocks() * region.strideBytes());
                if (good) {
                    HashModel.write(cache, layer, prompt, table, from);
                } else {
                    for (int i = from / regions.blockTokens(); i < table.length; i++) {
                        cache.asSlice(table[i] * region.strideBytes(), region.blockBytes())
                                .fill((byte) 0x77);
                    }
                }
            }
            received.add(id);
            if (!good) {
                failed.add(id);
            }
            if (ranks.stream().allMatch(other -> other.received.contains(id))) {
                reads.remove(id);
            }
        }

        /** What peers were told. */
        KvCacheRegions regions() {
            if (regions == null) {
                throw new AssertionError("not registered");
            }
            return regions;
        }

        @Override
        public void registerKvCaches(KvCacheRegions registered) {
            regions = registered;
            calls.add("register " + rank);
        }

        @Override
        public RankPayload payload() {
            if (released) {
                throw new IllegalStateException("payload: released");
            }
            KvCacheRegions known = regions();
            return new RankPayload(
                    0,
                    rank,
                    new AgentMetadata(
                            "fake",
                            TransportMetadata.ofAgent(new byte[0]),
                            List.of(),
                            known.deviceId(),
                            known.regions().getFirst().blocks(),
                            List.of(),
                            List.of(),
                            known.layout(),
                            known.blockTokens(),
                            List.of(),
                            "none",
                            1,
                            null,
                            null,
                            null,
                            null,
                            1,
                            1,
                            null,
                            List.of(),
                            Map.of()));
        }

        @Override
        public void start(ConnectorStep step) {
            if (released && !step.reads().isEmpty()) {
                throw new AssertionError("reads were ordered while released");
            }
            steps++;
            if (readsEndAtOnce) {
                step.reads().forEach(order -> endRead(order.requestId(), !failReads));
            }
        }

        @Override
        public WorkerReport poll() {
            polls++;
            if (failPoll) {
                throw new IllegalStateException("poll: made to fail");
            }
            WorkerReport report =
                    new WorkerReport(
                            sent,
                            Map.of(),
                            Set.of(),
                            received,
                            failed,
                            abandoned,
                            Stream.concat(failed.stream(), abandoned.stream())
                                    .collect(Collectors.toMap(id -> id, _ -> "lost " + PEER)),
                            Set.of(),
                            TransferStatistics.NONE,
                            List.of());
            abandoned.clear();
            sent.clear();
            received.clear();
            failed.clear();
            return report;
        }

        @Override
        public void prepareRelease(Duration limit) {
            if (!reads.isEmpty()) {
                calls.add("prepare " + rank + " while reads run");
                throw new ReleaseTimeoutException("reads run: " + reads.keySet());
            }
            if (failPrepare) {
                calls.add("prepare " + rank + " fails");
                throw new ReleaseTimeoutException("prepare: made to time out");
            }
            calls.add("prepare " + rank);
        }

        @Override
        public void releaseKvCaches(Duration limit) {
            if (failRelease) {
                calls.add("release " + rank + " fails");
                throw new ReleaseTimeoutException("release: made to time out");
            }
            calls.add("release " + rank);
            released = true;
        }

        @Override
        public void restoreKvCaches() {
            if (failRestore) {
                throw new IllegalStateException("restore: made to fail");
            }
            if (released) {
                // Touches the pages as a registration would; it must find them there.
                KvCacheRegions.Region region = regions().regions().getFirst();
                MemorySegment first =
                        MemorySegment.ofAddress(region.address()).reinterpret(region.blockBytes());
                first.copyFrom(first);
            }
            calls.add("restore " + rank);
            released = false;
        }

        @Override
        public boolean isReleased() {
            return released;
        }

        @Override
        public void close() {
            isClosed = true;
        }
    }
}
