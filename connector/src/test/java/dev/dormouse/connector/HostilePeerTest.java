package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.sun.management.ThreadMXBean;
import dev.dormouse.testkit.ModelTransport;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Nothing that a peer says ends an engine, stays loaded, or costs more than a bounded sum. */
final class HostilePeerTest {
    private static final long MAX_BYTES = 64L << 20;
    private static final RankId RANK = new RankId(0, 0);

    @Test
    void noBytesMakeADecoderThrowAnythingElseOrTakeMuchMemory() {
        ModelEngine p = new ModelWorld().start("P");
        byte[] payload = served(p);
        HandshakePayload honest = HandshakePayload.decode(payload);
        Seeded.forAll(
                3_000,
                random -> {
                    byte[] metadata = fuzzed(honest.agentMetadata(), random);
                    byte[] wrapper = fuzzed(payload, random);
                    byte[] request = fuzzed(HandshakeRequest.encode(RANK), random);
                    long before = allocated();
                    onlyRefusals(() -> AgentMetadataCodec.decode(metadata));
                    onlyRefusals(() -> HandshakePayload.decode(wrapper));
                    onlyRefusals(() -> HandshakeRequest.decode(request));
                    onlyRefusals(
                            () ->
                                    FetchedEngine.decode(
                                            "P",
                                            p.address(),
                                            answers(wrap(honest, metadata)),
                                            RankMapping.of(0, 1, 1, 2),
                                            0,
                                            p.config(),
                                            p.rank().regions()));
                    assertThat(allocated() - before).isLessThan(MAX_BYTES);
                });
    }

    @Test
    void aMessageOfManySmallElementsIsRefusedBeforeTheyAreMade() {
        byte[] bomb = bomb();
        long before = allocated();
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> AgentMetadataCodec.decode(bomb))
                .withMessageContaining("elements");
        assertThat(allocated() - before).isLessThan(MAX_BYTES);
    }

    @Test
    void noPayloadEndsAReaderOrStaysLoadedBesideItsHonestPeers() {
        Seeded.forAll(
                300,
                random -> {
                    ModelPair pair = new ModelPair();
                    ModelEngine d = pair.d();
                    ModelEngine q = pair.world().start("Q");
                    KvTransferParams params = pair.prefill(1);
                    HandshakePayload honest = HandshakePayload.decode(served(pair.p()));
                    byte[] hostile =
                            random.nextInt(4) == 0
                                    ? fuzzed(served(pair.p()), random)
                                    : wrap(honest, fuzzed(honest.agentMetadata(), random));
                    pair.world().sideChannels().serve(pair.p().address(), Map.of(RANK, hostile));
                    d.decode("d1", ModelPair.TOKENS, params, ModelPair.D_BLOCKS);
                    pair.world().settle();
                    assertThat(d.received()).contains("d1");
                    d.decode(
                            "d2",
                            ModelPair.TOKENS,
                            q.prefill("q1", ModelPair.TOKENS, ModelPair.P_BLOCKS, 7),
                            ModelPair.D_BLOCKS);
                    pair.world().settle();
                    assertThat(d.failed()).doesNotContain("d2");
                    assertThat(d.holds(ModelPair.D_BLOCKS, 7)).isTrue();
                    boolean loadedP = !d.failed().contains("d1");
                    assertThat(d.rank().transport().counts().peers())
                            .isLessThanOrEqualTo(2)
                            .isGreaterThanOrEqualTo(loadedP ? 2 : 1);
                });
    }

    @Test
    void aLoadThatFailsInAnyWayLeavesNothingLoaded() {
        ModelWorld world = new ModelWorld();
        ModelEngine p = world.start("P");
        ModelEngine d = world.start("D");
        FetchedEngine fetched =
                FetchedEngine.decode(
                        "P",
                        p.address(),
                        answers(served(p)),
                        RankMapping.of(0, 1, 1, 2),
                        0,
                        d.config(),
                        d.rank().regions());
        KvTransport failing =
                failing(d.rank().transport(), "prepareRemote", new IllegalArgumentException("x"));
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(() -> LoadedEngine.load(failing, fetched, _ -> {}));
        assertThat(d.rank().transport().counts().peers()).isZero();
        assertThat(d.rank().transport().counts().lists()).isEqualTo(1);
    }

    @Test
    void aReadThatCannotBePostedForWhateverReasonFails() {
        ModelWorld world = new ModelWorld();
        ModelEngine p = world.start("P");
        ModelEngine d = world.start("D");
        PullWorker worker =
                new PullWorker(
                        world.config("E").build(),
                        0,
                        failing(d.rank().transport(), "read", new ArithmeticException("injected")),
                        world.surroundings(),
                        () -> {});
        worker.registerKvCaches(d.rank().regions());
        RemoteSource source = RemoteHandOver.read(p.prefill("p1", 4, new int[] {0}, 1)).source();
        ReadOrder order = new ReadOrder("r1", source, List.of(1), List.of(0), 0, 4, true);
        worker.start(Steps.of(List.of(order), Set.of(), Set.of(), Map.of(), List.of(), 0));
        List<String> failed = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            world.tick();
            failed.addAll(worker.poll().failedReceiving());
        }
        assertThat(failed).containsExactly("r1");
    }

    @Test
    void payloadsOfAllRanksShareOneLimit() {
        HandshakeAnswers.Collector answers = new HandshakeAnswers.Collector();
        byte[] timestamp = new WireWriter().float64(1).bytes();
        byte[] half = new byte[HandshakePayload.MAX_BYTES / 2];
        answers.addPayload(half, timestamp, 0, 0);
        answers.addPayload(half, timestamp, 0, 0);
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> answers.addPayload(new byte[1], timestamp, 0, 0))
                .withMessageContaining("3 ranks");
    }

    @Test
    void messagesThatCannotBeTakenAreCountedAndTheWorkerGoesOn() {
        ModelWorld world = new ModelWorld();
        ModelEngine d = world.start("D");
        List<Throwable> failures = new ArrayList<>(List.of(new TransportException("injected")));
        PullWorker worker =
                new PullWorker(
                        world.config("E").build(),
                        0,
                        failing(d.rank().transport(), "messages", failures),
                        world.surroundings(),
                        () -> {});
        worker.registerKvCaches(d.rank().regions());
        worker.start(Steps.of(List.of(), Set.of(), Set.of(), Map.of(), List.of(), 0));
        assertThat(worker.poll().statistics().failedNotifications()).isEqualTo(1);
        assertThat(worker.poll().statistics().failedNotifications()).isZero();
    }

    @Test
    void whateverGoesWrongWithOnePeerIsItsOwnReadersFailure() {
        ModelWorld world = new ModelWorld();
        ModelEngine d = world.start("D");
        PullWorker worker =
                new PullWorker(
                        world.config("E").build(),
                        0,
                        d.rank().transport(),
                        world.surroundings(
                                world::nanoTime,
                                (address, _) -> {
                                    throw new IllegalStateException("injected at " + address);
                                }),
                        () -> {});
        worker.registerKvCaches(d.rank().regions());
        RemoteSource source = new RemoteSource("P", null, "p1", "127.0.0.1", 5600, 1, 1, 1);
        ReadOrder order = new ReadOrder("r1", source, List.of(1), List.of(2), 0, 4, true);
        Heartbeat heartbeat =
                new Heartbeat("Q", "127.0.0.1", 5601, 1, 0, Duration.ofSeconds(30), List.of("q1"));
        worker.start(Steps.of(List.of(order), Set.of(), Set.of(), Map.of(), List.of(heartbeat), 0));
        assertThat(worker.poll().failedReceiving()).containsExactly("r1");
    }

    private static KvTransport failing(ModelTransport transport, String method, Throwable always) {
        return failing(transport, method, Collections.nCopies(1, always), false);
    }

    private static KvTransport failing(
            ModelTransport transport, String method, List<Throwable> each) {
        return failing(transport, method, each, true);
    }

    private static KvTransport failing(
            ModelTransport transport, String method, List<Throwable> failures, boolean once) {
        return (KvTransport)
                Proxy.newProxyInstance(
                        KvTransport.class.getClassLoader(),
                        new Class<?>[] {KvTransport.class},
                        (_, called, arguments) -> {
                            if (called.getName().equals(method) && !failures.isEmpty()) {
                                throw once ? failures.removeFirst() : failures.getFirst();
                            }
                            try {
                                return called.invoke(transport, arguments);
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                        });
    }

    /** Sixteen million empty strings in sixteen megabytes. */
    private static byte[] bomb() {
        byte[] start = new WireWriter().map(1).string("region_members").array(1_000).bytes();
        byte[] names = new byte[3 + 16_000];
        Arrays.fill(names, (byte) 0xa0);
        names[0] = (byte) 0xdc;
        names[1] = (byte) (16_000 >> 8);
        names[2] = (byte) 16_000;
        byte[] all = Arrays.copyOf(start, start.length + 1_000 * names.length);
        for (int i = 0; i < 1_000; i++) {
            System.arraycopy(names, 0, all, start.length + i * names.length, names.length);
        }
        return all;
    }

    private static HandshakeAnswers answers(byte[] payload) {
        return new HandshakeAnswers(List.of(payload), null, Map.of());
    }

    private static byte[] fuzzed(byte[] honest, SplittableRandom random) {
        return random.nextInt(3) == 0
                ? WireFuzz.bytes(honest, random)
                : WireFuzz.message(honest, random);
    }

    private static byte[] wrap(HandshakePayload honest, byte[] metadata) {
        return new HandshakePayload(
                        honest.compatibilityHash(), metadata, honest.epoch(), honest.instanceId())
                .encode();
    }

    private static byte[] served(ModelEngine engine) {
        return engine.served(RANK);
    }

    private static void onlyRefusals(Runnable decoding) {
        try {
            decoding.run();
        } catch (ConnectorException expected) {
            assertThat(Objects.requireNonNull(expected.getMessage()).length()).isLessThan(2_000);
        }
    }

    private static long allocated() {
        return ((ThreadMXBean) ManagementFactory.getThreadMXBean())
                .getCurrentThreadAllocatedBytes();
    }
}
