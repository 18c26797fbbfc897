package dev.dormouse.connector;

import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.testkit.ModelTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;

/**
 * What an engine does to its connector, without an engine: blocks of model memory, a scheduler's
 * half, and one worker's half per rank.
 */
final class ModelEngine {
    static final int BLOCK_TOKENS = 4;
    static final int BLOCKS = 12;
    static final int LAYERS = 2;
    static final int BLOCK_BYTES = 48;
    static final int STRIDE_BYTES = 64;
    static final CompatibilityFactors FACTORS =
            CompatibilityFactors.of("model", "torch.bfloat16", 2, 16, LAYERS);

    private static final int PAGE_BYTES = 128;
    private static final long REGION_BYTES = (long) BLOCKS * STRIDE_BYTES;
    private static final Duration RELEASE_LIMIT = Duration.ofMillis(200);

    /** One rank. */
    static final class Rank {
        private final ModelMemory memory = new ModelMemory(PAGE_BYTES);
        private final long base;
        private final ModelTransport transport;
        private final NixlWorker worker;

        private Rank(ModelWorld world, ConnectorConfig config, int tpRank, LongSupplier nanoClock) {
            base = memory.allocate(LAYERS * REGION_BYTES);
            transport = world.fabric().open(world.nextAgentName(), memory);
            Surroundings surroundings = world.surroundings(nanoClock);
            worker =
                    config.factors().isPush()
                            ? new PushWorker(config, tpRank, transport, surroundings, () -> {})
                            : new PullWorker(config, tpRank, transport, surroundings, () -> {});
        }

        ModelTransport transport() {
            return transport;
        }

        ModelMemory memory() {
            return memory;
        }

        NixlWorker worker() {
            return worker;
        }

        long address(int layer, int block) {
            return base + layer * REGION_BYTES + (long) block * STRIDE_BYTES;
        }

        KvCacheRegions regions() {
            List<KvCacheRegions.Region> regions = new ArrayList<>();
            for (int layer = 0; layer < LAYERS; layer++) {
                regions.add(
                        new KvCacheRegions.Region(
                                "layers." + layer,
                                address(layer, 0),
                                BLOCKS,
                                BLOCK_BYTES,
                                STRIDE_BYTES));
            }
            return new KvCacheRegions(
                    regions,
                    List.of(new MemoryRange(base, LAYERS * REGION_BYTES, MemoryKind.DRAM, 0)),
                    BLOCK_TOKENS,
                    "LBHNC",
                    MemoryKind.DRAM,
                    0);
        }
    }

    private final ModelWorld world;
    private final ConnectorConfig config;
    private final SchedulerConnector scheduler;
    private final List<Rank> ranks = new ArrayList<>();
    private final RankReports reports;
    private final Set<String> sent = new HashSet<>();
    private final Set<String> received = new HashSet<>();
    private final Set<String> failed = new HashSet<>();
    private final Map<String, String> reasons = new HashMap<>();
    private final Set<String> abandoned = new HashSet<>();
    private final Set<String> reading = new HashSet<>();
    private TransferStatistics statistics = TransferStatistics.NONE;
    private Runnable beforeUnmap = () -> {};
    private boolean inStep;

    /** An engine whose clock is {@code ahead} of the world's. */
    ModelEngine(ModelWorld world, ConnectorConfig config, Duration ahead) {
        LongSupplier nanoClock = () -> world.nanoTime() + ahead.toNanos();
        this.world = world;
        this.config = config;
        this.scheduler =
                config.factors().isPush()
                        ? new PushScheduler(config, world.surroundings(nanoClock), () -> {})
                        : new PullScheduler(config, world.surroundings(nanoClock), () -> {});
        for (int rank = 0; rank < config.tpSize(); rank++) {
            ranks.add(new Rank(world, config, rank, nanoClock));
        }
        this.reports = new RankReports(config.tpSize());
    }

    void start() {
        ranks.forEach(rank -> rank.worker.registerKvCaches(rank.regions()));
        publish();
    }

    void publish() {
        scheduler.publish(ranks.stream().map(rank -> rank.worker.payload()).toList());
    }

    ConnectorConfig config() {
        return config;
    }

    SchedulerConnector scheduler() {
        return scheduler;
    }

    List<Rank> ranks() {
        return ranks;
    }

    Rank rank() {
        return ranks.getFirst();
    }

    SideChannelAddress address() {
        return new SideChannelAddress(config.advertisedHost(), scheduler.sideChannelPort());
    }

    /** The payload that its side channel serves for a rank. */
    byte[] served(RankId rank) {
        return Objects.requireNonNull(world.sideChannels().served(address()).get(rank));
    }

    /** One step of the engine's loop. */
    void step() {
        if (inStep) { // a release waits inside of it
            return;
        }
        inStep = true;
        try {
            ConnectorStep step = scheduler.step();
            List<WorkerReport> polled = new ArrayList<>();
            for (Rank rank : ranks) {
                rank.worker.start(step);
            }
            for (Rank rank : ranks) {
                polled.add(rank.worker.poll());
            }
            WorkerReport report = reports.merge(polled);
            scheduler.onReport(report);
            sent.addAll(report.finishedSending());
            received.addAll(report.finishedReceiving());
            failed.addAll(report.failedReceiving());
            reasons.putAll(report.failureReasons());
            abandoned.addAll(report.abandonedReceiving());
            reading.removeAll(report.finishedReceiving());
            statistics = statistics.plus(report.statistics());
        } finally {
            inStep = false;
        }
    }

    /** Fills a prompt's blocks on every rank and hands them over, as a finished prefill does. */
    KvTransferParams prefill(String requestId, int promptTokens, int[] blocks, long contentSeed) {
        ConnectorRequest request = new ConnectorRequest(requestId, promptTokens, Params.prefill());
        scheduler.onArrival(request);
        scheduler.onAllocated(request, blocks, 0, 0);
        fill(blocks, contentSeed);
        HandOver handOver = scheduler.onFinished(request, FinishKind.LENGTH, blocks, promptTokens);
        return Objects.requireNonNull(handOver.params());
    }

    /** Asks for the whole prompt's remote blocks, into {@code blocks}. */
    ConnectorRequest decode(
            String requestId, int promptTokens, KvTransferParams params, int[] blocks) {
        return decode(requestId, promptTokens, params, blocks, 0);
    }

    /** As above; the first {@code localTokens} are in this engine's own cache. */
    ConnectorRequest decode(
            String requestId,
            int promptTokens,
            KvTransferParams params,
            int[] blocks,
            int localTokens) {
        ConnectorRequest request = new ConnectorRequest(requestId, promptTokens, params);
        int _ = admit(request, blocks, localTokens);
        return request;
    }

    /**
     * Admits a request, and orders its read if there is one; answers how many tokens that reads.
     */
    int admit(ConnectorRequest request, int[] blocks, int localTokens) {
        scheduler.onArrival(request);
        int external = scheduler.externalTokens(request, localTokens);
        scheduler.onAllocated(request, blocks, localTokens, external);
        if (external > 0) {
            reading.add(request.id());
        }
        return external;
    }

    void sleep() {
        scheduler.withdraw();
        inStep = true; // the engine's loop stands still
        try {
            ranks.forEach(rank -> rank.worker.releaseKvCaches(RELEASE_LIMIT));
        } finally {
            inStep = false;
        }
        step(); // takes the reports of what ended during the release
        beforeUnmap.run();
        ranks.forEach(rank -> rank.memory.unmap(rank.base, LAYERS * REGION_BYTES));
    }

    /** Runs in each sleep while the pages are still there and nothing is registered any more. */
    void onUnmap(Runnable action) {
        beforeUnmap = action;
    }

    void wake() {
        ranks.forEach(rank -> rank.memory.map(rank.base, LAYERS * REGION_BYTES));
        ranks.forEach(rank -> rank.worker.restoreKvCaches());
        publish();
    }

    long regionBytes() {
        return LAYERS * REGION_BYTES;
    }

    /** Ends without a farewell. */
    void kill() {
        ranks.forEach(rank -> world.fabric().kill(rank.transport.agentName()));
        scheduler.close();
        world.forget(this);
    }

    /** Writes content that is different for each seed, rank, layer and position in the list. */
    void fill(int[] blocks, long contentSeed) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int i = 0; i < blocks.length; i++) {
                    ranks.get(rank)
                            .memory
                            .write(
                                    ranks.get(rank).address(layer, blocks[i]),
                                    content(contentSeed, rank, layer, i));
                }
            }
        }
    }

    /** True if each of {@code blocks}, from position {@code first}, holds what fill wrote. */
    boolean holds(int[] blocks, long contentSeed, int first) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int i = first; i < blocks.length; i++) {
                    byte[] found =
                            ranks.get(rank)
                                    .memory
                                    .read(ranks.get(rank).address(layer, blocks[i]), BLOCK_BYTES);
                    if (!Arrays.equals(found, content(contentSeed, rank, layer, i))) {
                        return false;
                    }
                }
            }
        }
        return true;
    }

    boolean holds(int[] blocks, long contentSeed) {
        return holds(blocks, contentSeed, 0);
    }

    boolean isReading() {
        return !reading.isEmpty();
    }

    Set<String> sent() {
        return sent;
    }

    Set<String> received() {
        return received;
    }

    Set<String> failed() {
        return failed;
    }

    /** Why a request's read has failed. */
    String reason(String requestId) {
        return Objects.requireNonNull(reasons.get(requestId));
    }

    /** Requests whose read has failed before its blocks were free. */
    Set<String> abandoned() {
        return abandoned;
    }

    TransferStatistics statistics() {
        return statistics;
    }

    private static byte[] content(long seed, int rank, int layer, int position) {
        byte[] bytes = new byte[BLOCK_BYTES];
        new SplittableRandom(((seed * 31 + rank) * 31 + layer) * 31 + position).nextBytes(bytes);
        return bytes;
    }
}
