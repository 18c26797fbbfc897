package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.transport.PeerMessage;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Which registration of which process a request means, and what it costs to find out. */
final class PeerIdentityTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");
    private int requests;

    @Test
    void anOlderEpochNeverCausesAHandshakeAndIsNeverRead() {
        KvTransferParams old = p.prefill("p1", 8, P_BLOCKS, 1);
        p.sleep();
        p.wake();
        assertTransfers(2);
        int fetches = world.sideChannels().fetches();

        String id = read(old);

        assertThat(d.failed()).contains(id);
        assertThat(world.sideChannels().fetches()).isEqualTo(fetches);
        assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void anOlderEpochIsNotReadEvenIfNothingIsLoaded() {
        KvTransferParams old = p.prefill("p1", 8, P_BLOCKS, 1);
        p.sleep();
        p.wake();
        p.fill(P_BLOCKS, 2);
        assertThat(d.failed()).contains(read(old));
        assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void aReadThroughARegistrationThatWasReleasedFailsAndTheNextHandshakesAgain() {
        assertTransfers(1);
        KvTransferParams old = p.prefill("p1", 8, P_BLOCKS, 1);
        p.sleep();
        String late = read(old);
        assertThat(d.failed()).contains(late);
        p.wake();
        assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void aPeerThatIsAsleepRefusesAtOnceAndIsAskedAgainByTheNextRequest() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        p.sleep();
        String id = read(params);
        assertThat(d.failed()).contains(id);
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
        p.wake();
        assertTransfers(2);
    }

    @Test
    void aNewerEpochWaitsUntilReadsThroughTheOldRegistrationHaveEnded() {
        assertTransfers(1);
        d.rank().transport().setReadDelay(Duration.ofMillis(50));
        KvTransferParams first = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("slow", 8, first, D_BLOCKS);
        world.tick();
        p.publish();
        d.rank().transport().setReadDelay(Duration.ZERO);
        KvTransferParams second = p.prefill("p2", 8, new int[] {6, 7}, 2);
        d.decode("new", 8, second, new int[] {0, 1});
        for (int i = 0; i < 30; i++) {
            world.tick();
            assertThat(d.received()).doesNotContain("new");
        }
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(d.holds(new int[] {0, 1}, 2)).isTrue();
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void aHandshakeThatStraddlesARepublishIsRedoneExactlyOnce() {
        KvTransferParams first = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, first, D_BLOCKS);
        d.step();
        assertThat(world.handshakes().runNext()).as("answered in epoch 1").isTrue();
        p.sleep();
        p.wake();
        KvTransferParams second = p.prefill("p2", 8, P_BLOCKS, 2);
        d.decode("d2", 8, second, new int[] {0, 1});
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.holds(new int[] {0, 1}, 2)).isTrue();
        assertThat(world.sideChannels().fetches()).isEqualTo(2);
    }

    @Test
    void theSmallestEpochOfAHandshakesRanksCounts() {
        ModelEngine wide = world.start(world.config("W").tpSize(2));
        byte[] before = served(wide, 1);
        wide.sleep();
        wide.wake();
        FetchedEngine straddled =
                FetchedEngine.decode(
                        "W",
                        wide.address(),
                        List.of(served(wide, 0), before),
                        0,
                        wide.config(),
                        d.rank().regions());
        assertThat(straddled.identity().epoch()).isEqualTo(1);
        assertThat(wide.scheduler().epoch()).isEqualTo(2);
    }

    @Test
    void anEpochThatThePeerNeverPublishedIsRefusedAndCostsTheWorkingPeerNothing() {
        assertTransfers(1);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        for (int i = 0; i < 5; i++) {
            KvTransferParams hostile =
                    Params.changed(params, json -> json.put("remote_registration_epoch", 1L << 40));
            assertThat(d.failed()).contains(read(hostile));
            assertTransfers(i);
        }
        assertThat(d.statistics().handshakes()).as("nothing was dropped").isEqualTo(1);
    }

    @Test
    void withoutAnEpochThePeerIsAskedBeforeEachReadAndReloadedOnlyIfItChanged() {
        assertTransfers(1);
        for (int i = 0; i < 3; i++) {
            int fetches = world.sideChannels().fetches();
            assertReads(stripped(p.prefill("s" + i, 8, P_BLOCKS, 10 + i)), 10 + i);
            assertThat(world.sideChannels().fetches()).isEqualTo(fetches + 1);
        }
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        p.sleep();
        p.wake();
        assertReads(stripped(p.prefill("after", 8, P_BLOCKS, 20)), 20);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void eitherNameOfTheEpochIsHonoured() {
        assertTransfers(1);
        p.sleep();
        p.wake();
        KvTransferParams vllms =
                Params.changed(
                        p.prefill("p1", 8, P_BLOCKS, 2),
                        json -> json.remove("remote_registration_epoch"));
        assertReads(vllms, 2);
        p.sleep();
        p.wake();
        KvTransferParams ours =
                Params.changed(
                        p.prefill("p2", 8, P_BLOCKS, 3),
                        json -> json.remove("remote_registration_generation"));
        assertReads(ours, 3);
        assertThat(d.statistics().handshakes()).isEqualTo(3);
    }

    @Test
    void aRestartedEngineOfTheSameIdIsNotTakenForTheOldOne() {
        assertTransfers(1);
        KvTransferParams fromTheDead = p.prefill("p1", 8, P_BLOCKS, 1);
        SideChannelAddress address = p.address();
        p.kill();
        p = world.start(world.config("P").instanceId("P-again").sideChannelPort(address.port()));
        assertThat(p.scheduler().epoch()).as("the counter starts again").isEqualTo(1);
        p.fill(P_BLOCKS, 66);

        assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        int fetches = world.sideChannels().fetches();
        assertThat(d.failed()).contains(read(fromTheDead));
        assertThat(world.sideChannels().fetches()).as("known to be gone").isEqualTo(fetches);
        assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.rank().transport().counts().peers()).isEqualTo(1);
    }

    @Test
    void aRestartIsNoticedWithoutTheInstanceIdToo() {
        assertTransfers(1);
        SideChannelAddress address = p.address();
        p.kill();
        p = world.start(world.config("P").instanceId("P-again").sideChannelPort(address.port()));
        KvTransferParams params =
                Params.changed(
                        p.prefill("p1", 8, P_BLOCKS, 2), json -> json.remove("remote_instance_id"));
        assertReads(params, 2);
    }

    @Test
    void aRequestForAProcessThatIsGoneFailsAfterOneQuestion() {
        KvTransferParams fromTheDead = p.prefill("p1", 8, P_BLOCKS, 1);
        SideChannelAddress address = p.address();
        p.kill();
        p = world.start(world.config("P").instanceId("P-again").sideChannelPort(address.port()));
        p.fill(P_BLOCKS, 66);
        assertThat(d.failed()).contains(read(fromTheDead));
        assertThat(d.failed()).contains(read(fromTheDead));
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
    }

    @Test
    void anotherEngineAtTheAddressReplacesTheOldOneOnceNothingUsesIt() {
        assertTransfers(1);
        SideChannelAddress address = p.address();
        p.kill();
        p = world.start(world.config("Q").sideChannelPort(address.port()));
        assertTransfers(2);
        world.settle();
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 0));
    }

    @Test
    void anEngineThatIsNotWhoTheRequestSaysIsRefused() {
        KvTransferParams lying =
                Params.changed(
                        p.prefill("p1", 8, P_BLOCKS, 1),
                        json -> json.put("remote_engine_id", "somebody else"));
        assertThat(d.failed()).contains(read(lying));
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
        assertThat(d.rank().transport().counts().peers()).isZero();
        assertTransfers(2);
    }

    @Test
    void aPeerThatDiesDuringAReadIsDroppedAndTheNextFailsFast() {
        assertTransfers(1);
        d.rank().transport().setReadDelay(Duration.ofMillis(10));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        world.tick();
        p.kill();
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        assertThat(d.failed()).contains(read(params));
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
    }

    @Test
    void aPeerThatLosesItsConnectionAgainAndAgainIsLeftAloneForLonger() {
        BackOff backOff = new BackOff();
        long second = Duration.ofSeconds(1).toNanos();
        long now = 5;
        backOff.strike(now);
        assertThat(backOff.isActive(now)).as("the first time is free").isFalse();
        for (long delay : new long[] {1, 2, 4, 8, 16, 32}) {
            backOff.strike(now);
            assertThat(backOff.isActive(now + delay * second - 1)).isTrue();
            now += delay * second;
            assertThat(backOff.isActive(now)).isFalse();
        }
        backOff.strike(now);
        assertThat(backOff.isActive(now + 60 * second - 1)).isTrue();
        now += 60 * second;
        assertThat(backOff.isActive(now)).isFalse();
        assertThat(backOff.isForgiven(now)).isTrue();
        backOff.strike(now);
        assertThat(backOff.isActive(now)).as("a minute of health forgives").isFalse();
    }

    @Test
    void backingOffDoesNotHoldUpARequestOfANewerEpoch() {
        for (int cycle = 0; cycle < 4; cycle++) {
            assertTransfers(cycle);
            KvTransferParams old = p.prefill("late" + cycle, 8, P_BLOCKS, 1);
            p.sleep();
            assertThat(d.failed()).contains(read(old));
            p.wake();
        }
        assertTransfers(9);
        assertThat(d.statistics().handshakes()).as("one per wake").isEqualTo(5);
    }

    @Test
    void anIdlePeerIsEvictedAndABusyOrRenewedOneIsNot() {
        assertTransfers(1);
        world.elapse(d.config().engineTtl().minusSeconds(10));
        world.settle();
        assertThat(d.rank().transport().counts().peers()).isEqualTo(1);
        d.rank().transport().setReadDelay(Duration.ofMinutes(1));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        world.tick();
        world.elapse(Duration.ofSeconds(50));
        world.tick();
        assertThat(d.rank().transport().counts().peers()).as("a read is in flight").isEqualTo(1);
        world.elapse(Duration.ofSeconds(20));
        world.settle();
        assertThat(d.failed()).isEmpty();
        world.elapse(d.config().engineTtl());
        world.settle();
        assertThat(d.rank().transport().counts().peers()).isZero();
        d.rank().transport().setReadDelay(Duration.ZERO);
        assertTransfers(2);
    }

    @Test
    void mismatchesAreRefusedAtTheHandshake() {
        ModelEngine wide = world.start(world.config("wide").tpSize(2));
        ModelEngine other =
                world.start(
                        ConnectorConfig.builder(
                                        CompatibilityFactors.of("another model", "f", 1, 1, 1),
                                        ModelEngine.BLOCK_TOKENS)
                                .engineId("other")
                                .sideChannelPort(0));
        KvTransferParams fromWide = wide.prefill("w", 8, P_BLOCKS, 1);
        KvTransferParams fromOther = other.prefill("o", 8, P_BLOCKS, 1);
        assertThat(d.failed()).contains(read(fromWide));
        assertThat(d.failed()).contains(read(fromOther));
        assertThat(d.statistics().failedHandshakes()).isEqualTo(2);
        assertThat(d.rank().transport().readsPosted()).isZero();
        ModelEngine lenient = world.start(world.config("L").enforceCompatibility(false));
        lenient.decode("l", 8, other.prefill("o2", 8, P_BLOCKS, 5), D_BLOCKS);
        world.settle();
        assertThat(lenient.holds(D_BLOCKS, 5)).as("unless that is not enforced").isTrue();
    }

    @Test
    void aLoadThatTheTransportRefusesFailsTheHandshakeOnly() {
        d.rank().transport().failLoads(1);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        assertThat(d.failed()).contains(read(params));
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        assertReads(params, 1);
    }

    @Test
    void tooManyHandshakesAtOnceAreRefusedAndNotQueuedWithoutEnd() {
        world.handshakes().setCapacity(0);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        assertThat(d.failed()).contains(read(params));
        world.handshakes().setCapacity(1);
        assertReads(params, 1);
    }

    @Test
    void aPeerOfVllmThatTellsNoEpochIsReloadedOnlyWhenItsBytesChange() {
        serveLikeVllm();
        assertReads(likeVllm(p.prefill("p1", 8, P_BLOCKS, 1), 1), 1);
        assertReads(likeVllm(p.prefill("p2", 8, P_BLOCKS, 2), 1), 2);
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
        assertReads(likeVllm(p.prefill("p3", 8, P_BLOCKS, 3), 2), 3);
        assertThat(d.statistics().handshakes()).as("asked, but unchanged").isEqualTo(1);
        p.sleep();
        p.wake();
        serveLikeVllm();
        assertReads(likeVllm(p.prefill("p4", 8, P_BLOCKS, 4), 3), 4);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.failed()).contains(read(likeVllm(p.prefill("p5", 8, P_BLOCKS, 5), 2)));
    }

    @Test
    void aHeartbeatToAPeerThatIsLostIsCountedAndThePeerIsAskedAgain() {
        assertTransfers(1);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.scheduler().onArrival(new ConnectorRequest("waits", 8, params));
        d.rank().transport().failNotifies(1);
        world.elapse(Duration.ofSeconds(6));
        world.tick();
        assertThat(d.statistics().failedNotifications()).isEqualTo(1);
        world.elapse(Duration.ofSeconds(6));
        world.settle();
        assertThat(d.statistics().failedNotifications()).isEqualTo(1);
        assertThat(p.sent()).doesNotContain("p1");
        world.fabric()
                .inject(
                        p.rank().transport().agentName(),
                        new PeerMessage("x", "p1:1".getBytes(UTF_8)));
        world.settle();
        assertThat(p.sent()).contains("p1");
    }

    private byte[] served(ModelEngine engine, int tpRank) {
        return Objects.requireNonNull(
                world.sideChannels().served(engine.address()).get(new RankId(0, tpRank)));
    }

    private void serveLikeVllm() {
        Map<RankId, byte[]> served = new HashMap<>();
        world.sideChannels()
                .served(p.address())
                .forEach(
                        (rank, bytes) -> {
                            HandshakePayload payload = HandshakePayload.decode(bytes);
                            served.put(
                                    rank,
                                    new HandshakePayload(
                                                    payload.compatibilityHash(),
                                                    payload.agentMetadata(),
                                                    0,
                                                    null)
                                            .encode());
                        });
        world.sideChannels().serve(p.address(), served);
    }

    private static KvTransferParams likeVllm(KvTransferParams params, long generation) {
        return Params.changed(
                params,
                json -> {
                    json.remove("remote_registration_epoch");
                    json.remove("remote_instance_id");
                    json.put("remote_registration_generation", generation);
                });
    }

    private static KvTransferParams stripped(KvTransferParams params) {
        return Params.changed(
                params,
                json -> {
                    json.remove("remote_registration_epoch");
                    json.remove("remote_registration_generation");
                    json.remove("remote_instance_id");
                });
    }

    /** Orders a read, and waits for its end. */
    private String read(KvTransferParams params) {
        String id = "read" + requests++;
        d.decode(id, 8, params, D_BLOCKS);
        world.settle();
        assertThat(d.received()).contains(id);
        return id;
    }

    private void assertReads(KvTransferParams params, long content) {
        assertThat(d.failed()).doesNotContain(read(params));
        assertThat(d.holds(D_BLOCKS, content)).isTrue();
    }

    private void assertTransfers(long content) {
        assertReads(p.prefill("p" + requests++, 8, P_BLOCKS, content), content);
    }
}
