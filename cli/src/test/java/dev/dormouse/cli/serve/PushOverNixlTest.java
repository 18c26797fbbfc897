package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.ConnectorStep;
import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.HandOver;
import dev.dormouse.connector.KvCacheRegions;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.PushConnector;
import dev.dormouse.connector.RankReports;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The push connector over the real library, with memory that really goes and comes: prompts are
 * written from one engine's blocks into another's, between sleeps of both.
 */
final class PushOverNixlTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int BLOCK_TOKENS = 4;
    private static final int BLOCKS = 8;
    private static final int BLOCK_BYTES = 16 << 10;
    private static final int LAYERS = 2;
    private static final int REGION_BYTES = BLOCKS * BLOCK_BYTES;
    private static final int TOKENS = 2 * BLOCK_TOKENS;
    private static final int[] P_BLOCKS = {6, 1};
    private static final int[] D_BLOCKS = {2, 5};

    /** An engine's connector and memory, without the engine. */
    private static final class Engine implements AutoCloseable {
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

        Engine(String id, Map<String, String> backend) {
            ConnectorConfig config =
                    ConnectorConfig.builder(
                                    CompatibilityFactors.of("m", "torch.float16", 2, 16, LAYERS)
                                            .pushed(),
                                    BLOCK_TOKENS)
                            .engineId(id)
                            .bindHost("127.0.0.1")
                            .sideChannelPort(0)
                            .build();
            memory.wake(Set.of(MemoryTag.KV_CACHE));
            scheduler = PushConnector.scheduler(config);
            worker =
                    PushConnector.worker(
                            config,
                            0,
                            NixlTransport.open(
                                    "UCX", UcxSleepDefaults.applied(backend, System.getenv())));
            worker.registerKvCaches(regions());
            scheduler.publish(List.of(worker.payload()));
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
                            MemorySegment.copy(
                                    bytes, 0, block, ValueLayout.JAVA_BYTE, 0, BLOCK_BYTES));
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
            scheduler.withdraw();
            worker.releaseKvCaches(LIMIT);
            memory.sleep(Set.of(MemoryTag.KV_CACHE));
            memory.wake(Set.of(MemoryTag.KV_CACHE));
            worker.restoreKvCaches();
            scheduler.publish(List.of(worker.payload()));
        }

        @Override
        public void close() {
            worker.close();
            scheduler.close();
            memory.close();
        }
    }

    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    /** {@code tcp} writes by address, in the waiting process; the others as the machine allows. */
    @ParameterizedTest
    @ValueSource(strings = {"", "TLS=tcp"})
    void promptsAreWrittenBetweenSleepsOfBothEngines(String engineConfig) {
        Map<String, String> backend =
                engineConfig.isEmpty() ? Map.of() : Map.of("engine_config", engineConfig);
        try (Engine p = new Engine("P", backend);
                Engine d = new Engine("D", backend)) {
            for (int round = 0; round < 6; round++) {
                String id = "r" + round;
                d.decode("d" + id, p.prefill("p" + id, round));
                Await.until(
                        "the push of " + id,
                        LIMIT,
                        () -> {
                            p.step();
                            d.step();
                            return d.received.contains("d" + id) && p.sent.contains("p" + id);
                        },
                        () -> d.received + " " + p.sent);
                assertThat(d.failed).isEmpty();
                assertThat(d.holds(round)).isTrue();
                if (round % 3 != 0) {
                    d.sleepAndWake();
                }
                if (round % 3 != 1) {
                    p.sleepAndWake();
                }
            }
        }
    }
}
