package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.transport.PeerMessage;
import java.time.Duration;
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
        d.rank().transport().setReadDelay(Duration.ofMillis(10));
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.decode("d1", 8, params, ModelPair.D_BLOCKS);
        world.tick();
        pair.p().kill();
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        pair.assertFails(params);
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
        d.rank().transport().setReadDelay(Duration.ofMinutes(1));
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.decode("d1", 8, params, ModelPair.D_BLOCKS);
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
    void aLoadThatTheTransportRefusesFailsTheHandshakeOnly() {
        d.rank().transport().failLoads(1);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.assertFails(params);
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        pair.assertReads(params, 1);
    }

    @Test
    void tooManyHandshakesAtOnceAreRefusedAndNotQueuedWithoutEnd() {
        world.handshakes().setCapacity(0);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.assertFails(params);
        world.handshakes().setCapacity(1);
        pair.assertReads(params, 1);
    }

    @Test
    void aHeartbeatToAPeerThatIsLostIsCountedAndThePeerIsAskedAgain() {
        pair.assertTransfers(1);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.scheduler().onArrival(new ConnectorRequest("waits", 8, params));
        d.rank().transport().failNotifies(1);
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
}
