package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFabric;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.testkit.ModelTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The connector as an engine gets it: real side channels, handshake threads and clock. */
final class PullConnectorTest {
    private static final int BLOCK_BYTES = 64;
    private static final int BLOCKS = 8;

    /** An engine's connector with real sockets, over the model transport. */
    private static final class Node implements AutoCloseable {
        private final ModelMemory memory = new ModelMemory(BLOCK_BYTES);
        private final long base = memory.allocate(BLOCKS * BLOCK_BYTES);
        private final ModelTransport transport;
        private final SchedulerConnector scheduler;
        private final WorkerConnector worker;
        private final Set<String> received = new HashSet<>();
        private final Set<String> failed = new HashSet<>();

        Node(ModelFabric fabric, ConnectorConfig config) {
            transport = fabric.open("agent of " + config.engineId(), memory);
            scheduler = PullConnector.scheduler(config);
            worker = PullConnector.worker(config, 0, transport);
            worker.registerKvCaches(
                    new KvCacheRegions(
                            List.of(
                                    new KvCacheRegions.Region(
                                            "l0", base, BLOCKS, BLOCK_BYTES, BLOCK_BYTES)),
                            List.of(
                                    new MemoryRange(
                                            base, BLOCKS * BLOCK_BYTES, MemoryKind.DRAM, 0)),
                            4,
                            "LBHNC",
                            MemoryKind.DRAM,
                            0));
        }

        void step() {
            worker.start(scheduler.step());
            WorkerReport report = worker.poll();
            scheduler.onReport(report);
            received.addAll(report.finishedReceiving());
            failed.addAll(report.failedReceiving());
        }

        KvTransferParams prefill(String id, byte[] content) {
            ConnectorRequest request = new ConnectorRequest(id, 4, Params.prefill());
            scheduler.onAllocated(request, new int[] {5}, 0, 0);
            memory.write(base + 5 * BLOCK_BYTES, content);
            return Objects.requireNonNull(
                    scheduler.onFinished(request, FinishKind.LENGTH, new int[] {5}, 4).params());
        }

        void decode(String id, KvTransferParams params) {
            ConnectorRequest request = new ConnectorRequest(id, 4, params);
            scheduler.onArrival(request);
            scheduler.onAllocated(request, new int[] {2}, 0, scheduler.externalTokens(request, 0));
        }

        byte[] read() {
            return memory.read(base + 2 * BLOCK_BYTES, BLOCK_BYTES);
        }

        @Override
        public void close() {
            scheduler.close();
            worker.close();
        }
    }

    private final ModelFabric fabric = new ModelFabric(System::nanoTime);
    private final List<Node> nodes = new ArrayList<>();
    private final Node p = node("P", Duration.ofSeconds(20));
    private final Node d = node("D", Duration.ofSeconds(20));

    @AfterEach
    void close() {
        nodes.forEach(Node::close);
        nodes.forEach(node -> assertThat(node.transport.counts()).isEqualTo(ModelCounts.NONE));
    }

    @Test
    void aPromptIsReadOverARealHandshakeBeforeAndAfterASleep() {
        p.scheduler.publish(List.of(p.worker.payload()));
        for (byte cycle = 1; cycle < 4; cycle++) {
            byte[] content = new byte[BLOCK_BYTES];
            Arrays.fill(content, cycle);
            d.decode("d" + cycle, p.prefill("p" + cycle, content));
            awaitEnd("d" + cycle, d);
            assertThat(d.failed).isEmpty();
            assertThat(d.read()).isEqualTo(content);
            Await.until("the holder is told", () -> held(p) == 0);

            p.scheduler.withdraw();
            p.worker.releaseKvCaches(Duration.ofSeconds(20));
            p.memory.unmap(p.base, BLOCKS * BLOCK_BYTES);
            assertThat(p.memory.residentBytes()).isZero();
            p.memory.map(p.base, BLOCKS * BLOCK_BYTES);
            p.worker.restoreKvCaches();
            p.scheduler.publish(List.of(p.worker.payload()));
        }
    }

    @Test
    void deadPeersDoNotHoldUpOthersAndFailAtTheirLimit() throws IOException {
        p.scheduler.publish(List.of(p.worker.payload()));
        Node impatient = node("I", Duration.ofMillis(1_500));
        KvTransferParams good = p.prefill("p1", new byte[BLOCK_BYTES]);
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            for (int i = 0; i < 3; i++) {
                String engine = "silent" + i;
                impatient.decode(
                        engine,
                        Params.changed(
                                good,
                                json -> {
                                    json.put("remote_engine_id", engine);
                                    json.put("remote_port", silent.getLocalPort());
                                }));
            }
            impatient.step();
            impatient.decode("good", good);
            awaitEnd("good", impatient);
            assertThat(impatient.failed).as("the good one is served first").isEmpty();
            assertThat(impatient.received).containsExactly("good");
            for (int i = 0; i < 3; i++) {
                awaitEnd("silent" + i, impatient);
            }
            assertThat(impatient.failed).containsExactlyInAnyOrder("silent0", "silent1", "silent2");
        }
    }

    @Test
    void anUnreachablePeerFailsItsRequestOnly() throws IOException {
        p.scheduler.publish(List.of(p.worker.payload()));
        KvTransferParams good = p.prefill("p1", new byte[BLOCK_BYTES]);
        int closedPort;
        try (ServerSocket socket = new ServerSocket(0)) {
            closedPort = socket.getLocalPort();
        }
        int port = closedPort;
        d.decode(
                "bad",
                Params.changed(
                        good,
                        json -> {
                            json.put("remote_engine_id", "X");
                            json.put("remote_port", port);
                        }));
        d.decode(
                "unknown host",
                Params.changed(
                        good,
                        json -> {
                            json.put("remote_engine_id", "Y");
                            json.put("remote_host", "no-such-host.invalid");
                        }));
        awaitEnd("bad", d);
        awaitEnd("unknown host", d);
        assertThat(d.failed).containsExactlyInAnyOrder("bad", "unknown host");
        d.decode("good", good);
        awaitEnd("good", d);
        assertThat(d.failed).doesNotContain("good");
    }

    @Test
    void aSecondEngineOnThePortIsTold() {
        p.scheduler.publish(List.of(p.worker.payload()));
        ConnectorConfig same =
                config("S", Duration.ofSeconds(1))
                        .sideChannelPort(p.scheduler.sideChannelPort())
                        .build();
        Node second = new Node(fabric, same);
        nodes.add(second);
        assertThatExceptionOfType(SideChannelException.class)
                .isThrownBy(() -> second.scheduler.publish(List.of(second.worker.payload())))
                .withMessageContaining("127.0.0.1:" + p.scheduler.sideChannelPort())
                .withMessageContaining("--side-channel-port");
    }

    private void awaitEnd(String id, Node reader) {
        Await.until(
                "the end of " + id,
                Duration.ofSeconds(30),
                () -> {
                    nodes.forEach(Node::step);
                    return reader.received.contains(id);
                },
                () -> reader.received);
    }

    private int held(Node node) {
        nodes.forEach(Node::step);
        return node.scheduler.heldRequests();
    }

    private Node node(String engineId, Duration handshakeTimeout) {
        Node node = new Node(fabric, config(engineId, handshakeTimeout).build());
        nodes.add(node);
        return node;
    }

    private static ConnectorConfig.Builder config(String engineId, Duration handshakeTimeout) {
        return ConnectorConfig.builder(CompatibilityFactors.of("m", "d", 1, 1, 1), 4)
                .engineId(engineId)
                .bindHost("127.0.0.1")
                .sideChannelPort(0)
                .handshakeTimeout(handshakeTimeout);
    }
}
