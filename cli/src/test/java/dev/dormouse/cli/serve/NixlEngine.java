package dev.dormouse.cli.serve;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.ConnectorStep;
import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.HandOver;
import dev.dormouse.connector.KvCacheRegions;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.MultiConnector;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.PushConnector;
import dev.dormouse.connector.RankReports;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * An engine's connector over the real library and memory that really goes and comes, without the
 * engine.
 */
final class NixlEngine implements AutoCloseable {
    /** Only bounds a failing test. */
    static final Duration LIMIT = Duration.ofSeconds(60);

    static final int BLOCK_TOKENS = 4;
    static final int TOKENS = 2 * BLOCK_TOKENS;

    private static final int BLOCKS = 8;
    private static final int BLOCK_BYTES = 16 << 10;
    private static final int LAYERS = 2;
    private static final int REGION_BYTES = BLOCKS * BLOCK_BYTES;
    private static final int[] P_BLOCKS = {6, 1};
    private static final int[] D_BLOCKS = {2, 5};

    /** What a connector of the engine is. */
    enum Mode {
        PULL,
        PUSH
    }

    private final SleepableMemory memory =
            SleepableMemory.reserve(
                    MemoryOptions.of(Map.of(MemoryTag.KV_CACHE, (long) LAYERS * REGION_BYTES)),
                    System::nanoTime);
    private final SleepableRegion kv =
            memory.allocate("kv", MemoryTag.KV_CACHE, (long) LAYERS * REGION_BYTES);
    private final SchedulerConnector scheduler;
    private final WorkerConnector worker;
    private final RankReports reports = new RankReports(1);
    private final Set<String> sent = new HashSet<>();
    private final Set<String> received = new HashSet<>();
    private final Set<String> failed = new HashSet<>();
    private final List<TransferStatistics> statistics = new ArrayList<>();

    /** One of these connectors, in order; more than one are a multi connector's. */
    NixlEngine(String id, Map<String, String> backend, Mode... modes) {
        memory.wake(Set.of(MemoryTag.KV_CACHE));
        List<SchedulerConnector> schedulers = new ArrayList<>();
        List<WorkerConnector> workers = new ArrayList<>();
        for (Mode mode : modes) {
            ConnectorConfig config = config(id + statistics.size(), mode);
            NixlTransport transport =
                    NixlTransport.open("UCX", UcxSleepDefaults.applied(backend, System.getenv()));
            switch (mode) {
                case PULL -> {
                    schedulers.add(PullConnector.scheduler(config));
                    workers.add(PullConnector.worker(config, 0, transport));
                }
                case PUSH -> {
                    schedulers.add(PushConnector.scheduler(config));
                    workers.add(PushConnector.worker(config, 0, transport));
                }
            }
            statistics.add(TransferStatistics.NONE);
        }
        boolean one = modes.length == 1;
        scheduler = one ? schedulers.getFirst() : MultiConnector.scheduler(schedulers);
        worker = one ? workers.getFirst() : MultiConnector.worker(workers, System::nanoTime);
        worker.registerKvCaches(regions());
        scheduler.publish(List.of(worker.payload()));
    }

    private static ConnectorConfig config(String id, Mode mode) {
        CompatibilityFactors factors = CompatibilityFactors.of("m", "torch.float16", 2, 16, LAYERS);
        return ConnectorConfig.builder(mode == Mode.PUSH ? factors.pushed() : factors, BLOCK_TOKENS)
                .engineId(id)
                .bindHost("127.0.0.1")
                .sideChannelPort(0)
                .build();
    }

    private KvCacheRegions regions() {
        return new KvCacheRegions(
                IntStream.range(0, LAYERS)
                        .mapToObj(
                                layer ->
                                        new KvCacheRegions.Region(
                                                "l" + layer,
                                                kv.address() + (long) layer * REGION_BYTES,
                                                BLOCKS,
                                                BLOCK_BYTES,
                                                BLOCK_BYTES))
                        .toList(),
                List.of(
                        new MemoryRange(
                                memory.address(MemoryTag.KV_CACHE),
                                memory.lengthBytes(MemoryTag.KV_CACHE),
                                MemoryKind.DRAM,
                                0)),
                BLOCK_TOKENS,
                "LBHNC",
                MemoryKind.DRAM,
                0);
    }

    void step() {
        ConnectorStep step = scheduler.step();
        worker.start(step);
        WorkerReport report = reports.merge(List.of(worker.poll()));
        scheduler.onReport(report);
        sent.addAll(report.finishedSending());
        received.addAll(report.finishedReceiving());
        failed.addAll(report.failedReceiving());
        List<WorkerReport> ofConnectors =
                report.children().isEmpty() ? List.of(report) : report.children();
        for (int i = 0; i < ofConnectors.size(); i++) {
            statistics.set(i, statistics.get(i).plus(ofConnectors.get(i).statistics()));
        }
    }

    KvTransferParams prefill(String id, long content) {
        ConnectorRequest request =
                new ConnectorRequest(
                        id,
                        TOKENS,
                        KvTransferParams.of(
                                JsonNodeFactory.instance
                                        .objectNode()
                                        .put("do_remote_decode", true)));
        scheduler.onArrival(request);
        scheduler.onAllocated(request, P_BLOCKS, 0, 0);
        forEachBlock(
                P_BLOCKS,
                content,
                (block, bytes) ->
                        MemorySegment.copy(bytes, 0, block, ValueLayout.JAVA_BYTE, 0, BLOCK_BYTES));
        HandOver handOver = scheduler.onFinished(request, FinishKind.LENGTH, P_BLOCKS, TOKENS);
        return Objects.requireNonNull(handOver.params());
    }

    void decode(String id, KvTransferParams params) {
        ConnectorRequest request = new ConnectorRequest(id, TOKENS, params);
        scheduler.onArrival(request);
        scheduler.onAllocated(request, D_BLOCKS, 0, scheduler.externalTokens(request, 0));
    }

    boolean holds(long content) {
        boolean[] equal = {true};
        forEachBlock(
                D_BLOCKS,
                content,
                (block, bytes) ->
                        equal[0] &= Arrays.equals(block.toArray(ValueLayout.JAVA_BYTE), bytes));
        return equal[0];
    }

    private interface BlockVisitor {
        void visit(MemorySegment block, byte[] content);
    }

    private void forEachBlock(int[] blocks, long content, BlockVisitor visitor) {
        try (MemoryLease lease = kv.lease("test")) {
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int i = 0; i < blocks.length; i++) {
                    byte[] bytes = new byte[BLOCK_BYTES];
                    new SplittableRandom(content * 31 + layer * 7L + i).nextBytes(bytes);
                    long offset = (long) layer * REGION_BYTES + (long) blocks[i] * BLOCK_BYTES;
                    visitor.visit(lease.segment().asSlice(offset, BLOCK_BYTES), bytes);
                }
            }
        }
    }

    void sleepAndWake() {
        letGo(LIMIT);
        memory.sleep(Set.of(MemoryTag.KV_CACHE));
        memory.wake(Set.of(MemoryTag.KV_CACHE));
        comeBack();
    }

    /** A sleep's first half. */
    void letGo(Duration limit) {
        scheduler.withdraw();
        worker.releaseKvCaches(limit);
    }

    /** A wake's second half, or what undoes a sleep that failed. */
    void comeBack() {
        worker.restoreKvCaches();
        scheduler.publish(List.of(worker.payload()));
    }

    boolean isReleased() {
        return worker.isReleased();
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

    /** What each of the connectors has done. */
    List<TransferStatistics> statistics() {
        return statistics;
    }

    @Override
    public void close() {
        worker.close();
        scheduler.close();
        memory.close();
    }
}
