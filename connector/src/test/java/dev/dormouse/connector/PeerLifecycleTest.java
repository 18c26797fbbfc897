package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.PeerMessage;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Peers that sleep, die, restart, mismatch or are not needed any more. */
final class PeerLifecycleTest {
    private final ModelPair pair = new ModelPair();
    private final ModelWorld world = pair.world();
    private final ModelEngine d = pair.d();

    @Test
    void aReadThroughARegistrationThatWasReleasedFailsAndTheNextHandshakesAgain() {
        pair.assertTransfers(1);
        KvTransferParams old = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.p().sleep();
        String late = pair.read(old);
        assertThat(d.failed()).contains(late);
        pair.p().wake();
        pair.assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void aPeerThatIsAsleepRefusesAtOnceAndIsAskedAgainByTheNextRequest() {
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.p().sleep();
        String id = pair.read(params);
        assertThat(d.failed()).contains(id);
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
        pair.p().wake();
        pair.assertTransfers(2);
    }

    @Test
    void anotherEngineAtTheAddressReplacesTheOldOneOnceNothingUsesIt() {
        pair.assertTransfers(1);
        pair.restartP("Q");
        pair.assertTransfers(2);
        world.settle();
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 0));
    }

    @Test
    void anEngineThatIsNotWhoTheRequestSaysIsRefused() {
        KvTransferParams lying =
                Params.changed(
                        pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1),
                        json -> json.put("remote_engine_id", "somebody else"));
        pair.assertFails(lying);
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
        assertThat(d.rank().transport().counts().peers()).isZero();
        pair.assertTransfers(2);
    }

    @Test
    void aPeerThatDiesDuringAReadIsDroppedAndTheNextFailsFast() {
        pair.assertTransfers(1);
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(10));
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        KvTransferParams next = pair.p().prefill("p2", 8, new int[] {6, 7}, 2);
        d.decode("d1", 8, params, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        pair.p().kill();
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        pair.assertFails(next);
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
            pair.assertTransfers(cycle);
            KvTransferParams old = pair.p().prefill("late" + cycle, 8, ModelPair.P_BLOCKS, 1);
            pair.p().sleep();
            pair.assertFails(old);
            pair.p().wake();
        }
        pair.assertTransfers(9);
        assertThat(d.statistics().handshakes()).as("one per wake").isEqualTo(5);
    }

    @Test
    void anIdlePeerIsEvictedAndABusyOrRenewedOneIsNot() {
        pair.assertTransfers(1);
        world.elapse(d.config().engineTtl().minusSeconds(10));
        world.settle();
        assertThat(d.rank().transport().counts().peers()).isEqualTo(1);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(20));
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.decode("d1", 8, params, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        world.elapse(Duration.ofSeconds(15));
        world.tick();
        assertThat(d.rank().transport().counts().peers()).as("a read is in flight").isEqualTo(1);
        world.elapse(Duration.ofSeconds(5));
        world.settle();
        assertThat(d.failed()).isEmpty();
        world.elapse(d.config().engineTtl());
        world.settle();
        assertThat(d.rank().transport().counts().peers()).isZero();
        d.rank().transport().faults().setReadDelay(Duration.ZERO);
        pair.assertTransfers(2);
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
        KvTransferParams fromWide = wide.prefill("w", 8, ModelPair.P_BLOCKS, 1);
        KvTransferParams fromOther = other.prefill("o", 8, ModelPair.P_BLOCKS, 1);
        pair.assertFails(fromWide);
        pair.assertFails(fromOther);
        assertThat(d.statistics().failedHandshakes()).isEqualTo(2);
        assertThat(d.rank().transport().readsPosted()).isZero();
        ModelEngine lenient = world.start(world.config("L").enforceCompatibility(false));
        lenient.decode("l", 8, other.prefill("o2", 8, ModelPair.P_BLOCKS, 5), ModelPair.D_BLOCKS);
        world.settle();
        assertThat(lenient.holds(ModelPair.D_BLOCKS, 5)).as("unless that is not enforced").isTrue();
    }

    @Test
    void aPeerThatCannotBeDroppedIsDroppedLaterAndLoadedAgain() {
        pair.assertTransfers(1);
        pair.p().sleep();
        pair.p().wake();
        d.rank().transport().faults().failPeerCloses(1);
        pair.assertTransfers(2);
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 0));
    }

    @Test
    void aFailedDropKeepsNothingElse() {
        pair.assertTransfers(1);
        d.rank().transport().faults().failListCloses(1);
        pair.p().kill();
        d.rank().transport().disconnectPeers();
        d.decode("late", ModelPair.TOKENS, Params.remote(_ -> {}), ModelPair.D_BLOCKS);
        world.settle();
        d.rank().worker().releaseKvCaches(Duration.ofSeconds(1));
        assertThat(d.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
    }

    @Test
    void aLoadThatTheTransportRefusesFailsTheHandshakeOnly() {
        d.rank().transport().faults().failLoads(1);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        String read = pair.read(params);
        assertThat(d.failed()).contains(read);
        assertThat(d.reason(read)).startsWith("could not load: ");
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        pair.assertTransfers(2);
        assertThat(d.statistics().rehandshakes()).isZero();
    }

    @Test
    void tooManyHandshakesAtOnceAreRefusedAndNotQueuedWithoutEnd() {
        world.handshakes().setCapacity(0);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.assertFails(params);
        world.handshakes().setCapacity(1);
        pair.assertReads(params, 1);
        KvTransferParams next = pair.prefill(2);
        world.handshakes().setCapacity(0);
        pair.assertFails(next);
        world.handshakes().setCapacity(1);
        pair.assertReads(next, 2);
    }

    @Test
    void aHeartbeatToAPeerThatIsLostIsCountedAndThePeerIsAskedAgain() {
        pair.assertTransfers(1);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.scheduler().onArrival(new ConnectorRequest("waits", 8, params));
        d.rank().transport().faults().failNotifies(1);
        world.elapse(Duration.ofSeconds(6));
        world.tick();
        assertThat(d.statistics().failedNotifications()).isEqualTo(1);
        world.elapse(Duration.ofSeconds(6));
        world.settle();
        assertThat(d.statistics().failedNotifications()).isEqualTo(1);
        assertThat(pair.p().sent()).doesNotContain("p1");
        world.fabric()
                .inject(
                        pair.p().rank().transport().agentName(),
                        new PeerMessage("x", "p1:1".getBytes(UTF_8)));
        world.settle();
        assertThat(pair.p().sent()).contains("p1");
    }

    @Test
    void aLostConnectionIsNoticedBeforeTheNextReadAndCostsNoRequest() {
        pair.assertTransfers(1);
        d.rank().transport().disconnectPeers();
        pair.assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.failed()).isEmpty();
    }

    @Test
    void aPeerThatIsLostAgainAtOnceIsLeftAloneForASecond() {
        pair.assertTransfers(1);
        d.rank().transport().disconnectPeers();
        pair.assertTransfers(2);
        d.rank().transport().disconnectPeers();
        int fetches = world.sideChannels().fetches();
        pair.assertFails(pair.prefill(3));
        assertThat(world.sideChannels().fetches()).isEqualTo(fetches);
        world.elapse(Duration.ofSeconds(1));
        pair.assertTransfers(4);
    }

    @Test
    void aLostPeerIsReloadedOnlyWhenNoReadUsesItAndNewReadsWaitForThat() {
        pair.assertTransfers(1);
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("stuck", ModelPair.TOKENS, pair.prefill(2), ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        d.rank().transport().disconnectPeers();
        int[] others = {0, 1};
        d.decode("waits", ModelPair.TOKENS, pair.prefill(3), others);
        for (int i = 0; i < 20; i++) {
            world.tick();
        }
        assertThat(d.received()).doesNotContain("stuck", "waits");
        d.rank().transport().failStuckReads();
        world.settle();
        assertThat(d.failed()).containsExactly("stuck");
        assertThat(d.holds(others, 3)).isTrue();
    }

    @Test
    void renewalsFindALostPeerAgain() {
        d.scheduler().onArrival(new ConnectorRequest("waits", 8, pair.prefill(1)));
        for (int second = 0; second < 90; second++) {
            if (second % 40 == 10) {
                d.rank().transport().disconnectPeers();
            }
            world.elapse(Duration.ofSeconds(1));
            world.settle();
        }
        assertThat(pair.p().sent()).isEmpty();
        assertThat(d.statistics().failedNotifications()).as("one per loss").isEqualTo(2);
        assertThat(d.statistics().handshakes()).isEqualTo(3);
    }

    @Test
    void renewalsRespectTheBackOff() {
        d.scheduler().onArrival(new ConnectorRequest("waits", 8, pair.prefill(1)));
        world.settle();
        for (int lost = 0; lost < 6; lost++) {
            d.rank().transport().disconnectPeers();
            for (int heartbeat = 0; heartbeat < 2; heartbeat++) { // one fails, one asks
                world.elapse(Duration.ofSeconds(5));
                world.settle();
            }
        }
        assertThat(d.statistics().handshakes()).as("the last are delayed").isBetween(4L, 6L);
        world.elapse(Duration.ofMinutes(1));
        world.settle();
        assertThat(d.rank().transport().counts().peers()).isEqualTo(1);
    }

    @Test
    void whatAFailedLoadCouldNotDropIsDroppedLater() {
        d.rank().transport().faults().failPreparations(1);
        d.rank().transport().faults().failPeerCloses(1);
        d.decode("d1", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().counts().peers()).isZero();
        pair.assertTransfers(2);
    }

    @Test
    void aPeerWhoseSizeDoesNotFitIsNotAskedForARenewal() {
        KvTransferParams wide = Params.changed(pair.prefill(1), json -> json.put("tp_size", 3));
        d.scheduler().onArrival(new ConnectorRequest("waits", 8, wide));
        world.settle();
        assertThat(world.sideChannels().fetches()).isZero();
    }

    @Test
    void aBlockThatOnlySomeRegionsHaveIsRefused() {
        KvTransferParams params = pair.p().prefill("p1", 4, new int[] {5}, 1);
        HandshakePayload payload =
                HandshakePayload.decode(
                        Objects.requireNonNull(
                                world.sideChannels()
                                        .served(pair.p().address())
                                        .get(new RankId(0, 0))));
        AgentMetadata honest = AgentMetadataCodec.decode(payload.agentMetadata());
        byte[] crooked = AgentMetadataCodec.encode(withRegionBlocks(honest, List.of(4L, 12L)));
        world.sideChannels()
                .serve(
                        pair.p().address(),
                        Map.of(
                                new RankId(0, 0),
                                new HandshakePayload(
                                                payload.compatibilityHash(),
                                                crooked,
                                                payload.epoch(),
                                                payload.instanceId())
                                        .encode()));
        d.decode("d1", 4, params, new int[] {5});
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().readsPosted()).isZero();
    }

    @Test
    void fewerRemoteThanLocalBlocksAreRefused() {
        RemoteSource source = RemoteHandOver.read(pair.prefill(1)).source();
        ReadOrder order = new ReadOrder("d1", source, List.of(4, 5), List.of(3), 0, 8, true);
        d.rank()
                .worker()
                .start(Steps.of(List.of(order), Set.of(), Set.of(), Map.of(), List.of(), 0));
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().readsPosted()).isZero();
    }

    @Test
    void damagedPayloadsFailTheHandshakeAndNothingElse() {
        KvTransferParams params = pair.prefill(1);
        RankId rank = new RankId(0, 0);
        byte[] good =
                Objects.requireNonNull(world.sideChannels().served(pair.p().address()).get(rank));
        Seeded.forAll(
                400,
                random -> {
                    byte[] damaged = good.clone();
                    int flips = random.nextInt(1, 4);
                    for (int i = 0; i < flips; i++) {
                        damaged[random.nextInt(damaged.length)] ^= (byte) (1 << random.nextInt(8));
                    }
                    world.sideChannels().serve(pair.p().address(), Map.of(rank, damaged));
                    assertThat(d.received()).contains(pair.read(params));
                });
        d.rank().transport().disconnectPeers();
        world.elapse(Duration.ofMinutes(2));
        world.sideChannels().serve(pair.p().address(), Map.of(rank, good));
        pair.assertTransfers(7);
    }

    private static AgentMetadata withRegionBlocks(AgentMetadata from, List<Long> regionBlocks) {
        return new AgentMetadata(
                from.engineId(),
                from.agentMetadata(),
                from.baseAddresses(),
                from.deviceId(),
                from.blocks(),
                from.blockBytes(),
                from.blockStrides(),
                from.layout(),
                from.blockTokens(),
                from.ssmSizes(),
                from.attentionBackend(),
                from.physicalBlocksPerLogical(),
                regionBlocks,
                from.regionGroups(),
                from.regionNames(),
                from.memoryTypes(),
                from.dcpSize(),
                from.pcpSize(),
                from.pleBlockBytes(),
                from.regionMembers(),
                from.packedMembers());
    }
}
