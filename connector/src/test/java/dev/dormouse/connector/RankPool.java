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

/**
 * An engine of any number of ranks, whose memory is compared element by element: KV of token t,
 * head h and layer l are {@link #ELEMENT_BYTES} bytes that say so. What {@link ModelEngine} is for
 * blocks of unknown contents, this is for contents with a layout.
 */
final class RankPool {
    static final int LAYERS = 2;
    static final int ELEMENT_BYTES = 6;
    private static final int BLOCKS = 14;
    private static final int PADDING_BYTES = 10;

    /** One rank. */
    private static final class Rank {
        private final ModelMemory memory = new ModelMemory(64);
        private final ModelTransport transport;
        private final NixlWorker worker;
        private final long base;
        private final long regionBytes;

        private Rank(ModelWorld world, RankPool pool, int tpRank) {
            regionBytes = (long) BLOCKS * (pool.blockBytes() + PADDING_BYTES);
            base = memory.allocate(LAYERS * regionBytes);
            transport = world.fabric().open(world.nextAgentName(), memory);
            Surroundings surroundings = world.surroundings();
            worker =
                    pool.config.factors().isPush()
                            ? new PushWorker(pool.config, tpRank, transport, surroundings, () -> {})
                            : new PullWorker(
                                    pool.config, tpRank, transport, surroundings, () -> {});
        }
    }

    private final ModelWorld world;
    private final int heads;
    private final int blockTokens;
    private final ConnectorConfig config;
    private final SchedulerConnector scheduler;
    private final List<Rank> ranks = new ArrayList<>();
    private final RankReports reports;
    private final Map<String, Integer> sentByRanks = new HashMap<>();
    private final Set<String> sent = new HashSet<>();
    private final Set<String> received = new HashSet<>();
    private final Set<String> failed = new HashSet<>();
    private TransferStatistics statistics = TransferStatistics.NONE;

    RankPool(ModelWorld world, String engineId, int tpSize, int heads, int blockTokens) {
        this(
                world,
                engineId,
                tpSize,
                CompatibilityFactors.of("m", "d", heads, 8, LAYERS),
                blockTokens);
    }

    /** An engine that reads or, if the factors say so, pushes. */
    RankPool(
            ModelWorld world,
            String engineId,
            int tpSize,
            CompatibilityFactors factors,
            int blockTokens) {
        this.world = world;
        this.heads = factors.kvHeads();
        this.blockTokens = blockTokens;
        config =
                ConnectorConfig.builder(factors, blockTokens)
                        .engineId(engineId)
                        .instanceId(engineId + "-instance")
                        .bindHost("127.0.0.1")
                        .sideChannelPort(0)
                        .tpSize(tpSize)
                        .build();
        scheduler =
                factors.isPush()
                        ? new PushScheduler(config, world.surroundings(), () -> {})
                        : new PullScheduler(config, world.surroundings(), () -> {});
        for (int rank = 0; rank < tpSize; rank++) {
            ranks.add(new Rank(world, this, rank));
        }
        reports = new RankReports(tpSize);
        ranks.forEach(rank -> rank.worker.registerKvCaches(regions(rank)));
        publish();
    }

    void publish() {
        scheduler.publish(ranks.stream().map(rank -> rank.worker.payload()).toList());
    }

    /** Computes a prompt into {@code blocks}, and hands it over. */
    KvTransferParams prefill(String id, int tokens, int[] blocks, long seed) {
        ConnectorRequest request = new ConnectorRequest(id, tokens, Params.prefill());
        scheduler.onArrival(request);
        scheduler.onAllocated(request, blocks, 0, 0);
        for (int rank = 0; rank < ranks.size(); rank++) {
            for (int token = 0; token < tokens; token++) {
                for (int layer = 0; layer < LAYERS; layer++) {
                    for (int head = 0; head < localHeads(); head++) {
                        ranks.get(rank)
                                .memory
                                .write(
                                        address(rank, layer, blocks, head, token),
                                        element(seed, layer, globalHead(rank, head), token));
                    }
                }
            }
        }
        return Objects.requireNonNull(
                scheduler.onFinished(request, FinishKind.LENGTH, blocks, tokens).params());
    }

    /** Orders a prompt's read; tells how many tokens will come. */
    int decode(String id, int tokens, KvTransferParams params, int[] blocks, int localTokens) {
        ConnectorRequest request = new ConnectorRequest(id, tokens, params);
        scheduler.onArrival(request);
        int external = scheduler.externalTokens(request, localTokens);
        scheduler.onAllocated(request, blocks, localTokens, external);
        return external;
    }

    /** True if the tokens from {@code first} hold what {@link #prefill} wrote for them. */
    boolean holds(int[] blocks, long seed, int first, int tokens) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            for (int token = first; token < tokens; token++) {
                for (int layer = 0; layer < LAYERS; layer++) {
                    for (int head = 0; head < localHeads(); head++) {
                        byte[] wanted = element(seed, layer, globalHead(rank, head), token);
                        byte[] found =
                                ranks.get(rank)
                                        .memory
                                        .read(
                                                address(rank, layer, blocks, head, token),
                                                ELEMENT_BYTES);
                        if (!Arrays.equals(wanted, found)) {
                            return false;
                        }
                    }
                }
            }
        }
        return true;
    }

    /** All of one rank's memory, to see that nothing else was written. */
    byte[] block(int rank, int layer, int block) {
        int strideBytes = blockBytes() + PADDING_BYTES;
        Rank owner = ranks.get(rank);
        return owner.memory.read(
                owner.base + layer * owner.regionBytes + (long) block * strideBytes, strideBytes);
    }

    void step() {
        ConnectorStep step = scheduler.step();
        ranks.forEach(rank -> rank.worker.start(step));
        List<WorkerReport> polled = new ArrayList<>();
        for (Rank rank : ranks) {
            WorkerReport report = rank.worker.poll();
            report.finishedSending().forEach(id -> sentByRanks.merge(id, 1, Integer::sum));
            polled.add(report);
        }
        WorkerReport report = reports.merge(polled);
        scheduler.onReport(report);
        sent.addAll(report.finishedSending());
        received.addAll(report.finishedReceiving());
        failed.addAll(report.failedReceiving());
        statistics = statistics.plus(report.statistics());
    }

    /** How many of the ranks have told that a request was read. */
    int ranksDoneSending(String id) {
        return sentByRanks.getOrDefault(id, 0);
    }

    int size() {
        return ranks.size();
    }

    int peersLoaded() {
        return ranks.stream().mapToInt(rank -> rank.transport.counts().peers()).sum();
    }

    int listsHeld() {
        return ranks.stream().mapToInt(rank -> rank.transport.counts().lists()).sum();
    }

    long readsPosted() {
        return ranks.stream().mapToLong(rank -> rank.transport.readsPosted()).sum();
    }

    long writesPosted() {
        return ranks.stream().mapToLong(rank -> rank.transport.writesPosted()).sum();
    }

    List<ModelTransport> transports() {
        return ranks.stream().map(rank -> rank.transport).toList();
    }

    void releaseAndRestore() {
        scheduler.withdraw();
        ranks.forEach(rank -> rank.worker.releaseKvCaches(Duration.ZERO));
        ranks.forEach(rank -> rank.worker.restoreKvCaches());
        publish();
    }

    SchedulerConnector scheduler() {
        return scheduler;
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

    TransferStatistics statistics() {
        return statistics;
    }

    ModelWorld world() {
        return world;
    }

    private KvCacheRegions regions(Rank rank) {
        List<KvCacheRegions.Region> regions = new ArrayList<>();
        for (int layer = 0; layer < LAYERS; layer++) {
            regions.add(
                    new KvCacheRegions.Region(
                            "layers." + layer,
                            rank.base + layer * rank.regionBytes,
                            BLOCKS,
                            blockBytes(),
                            blockBytes() + PADDING_BYTES));
        }
        return new KvCacheRegions(
                regions,
                List.of(new MemoryRange(rank.base, LAYERS * rank.regionBytes, MemoryKind.DRAM, 0)),
                blockTokens,
                "LBHNC",
                MemoryKind.DRAM,
                0);
    }

    private int blockBytes() {
        return localHeads() * blockTokens * ELEMENT_BYTES;
    }

    private int localHeads() {
        return Math.max(1, heads / config.tpSize());
    }

    private int globalHead(int rank, int localHead) {
        return config.tpSize() >= heads
                ? rank / (config.tpSize() / heads)
                : rank * localHeads() + localHead;
    }

    /** LBHNC: layer, block, head, token, content. */
    private long address(int rank, int layer, int[] blocks, int head, int token) {
        Rank owner = ranks.get(rank);
        return owner.base
                + layer * owner.regionBytes
                + (long) blocks[token / blockTokens] * (blockBytes() + PADDING_BYTES)
                + ((long) head * blockTokens + token % blockTokens) * ELEMENT_BYTES;
    }

    private static byte[] element(long seed, int layer, int head, int token) {
        byte[] bytes = new byte[ELEMENT_BYTES];
        new SplittableRandom(((seed * 31 + layer) * 31 + head) * 1_009 + token).nextBytes(bytes);
        return bytes;
    }
}
