package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Reads that fail: the request ends so, no other is harmed, and its blocks are free in time. */
final class ReadFailureTest {
    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");

    @Test
    void aFailedRankFailsTheRequestOnceAllRanksAreDone() {
        ModelEngine wideP = world.start(world.config("P2").tpSize(2));
        ModelEngine wideD = world.start(world.config("D2").tpSize(2));
        wideD.ranks().get(0).transport().faults().planRead(new ModelFault.FailHalfWay());
        wideD.ranks().get(1).transport().faults().setReadDelay(Duration.ofMillis(20));
        KvTransferParams params = wideP.prefill("p1", 8, new int[] {3, 1}, 5);
        wideD.decode("d1", 8, params, new int[] {4, 6});
        for (int i = 0; i < 10; i++) {
            world.tick();
            assertThat(wideD.failed()).isEmpty();
        }
        world.settle();
        assertThat(wideD.received()).containsExactly("d1");
        assertThat(wideD.failed()).containsExactly("d1");
        assertThat(wideP.sent()).as("the failed rank says so").containsExactly("p1");
    }

    @Test
    void aReadThatFailsInAnyWayEndsAsFailedAndHarmsNoOther() {
        List<ModelFault> faults =
                List.of(
                        new ModelFault.FailPost(),
                        new ModelFault.ThrowOnPoll(),
                        new ModelFault.FailHalfWay(),
                        new ModelFault.FailAndRefuseRelease(3));
        for (int i = 0; i < faults.size(); i++) {
            d.rank().transport().faults().planRead(faults.get(i));
            KvTransferParams bad = p.prefill("bad" + i, 4, new int[] {0}, 1);
            d.decode("bad" + i, 4, bad, new int[] {0});
            world.settle();
            assertThat(d.failed()).as(faults.get(i).toString()).contains("bad" + i);
            assertThat(d.statistics().failedTransfers()).isEqualTo(i + 1);
        }
        KvTransferParams good = p.prefill("good", 4, new int[] {1}, 2);
        d.decode("good", 4, good, new int[] {1});
        world.settle();
        assertThat(d.failed()).doesNotContain("good");
        assertThat(d.holds(new int[] {1}, 2)).isTrue();
        assertThat(p.sent())
                .as("a read that has failed is not needed any more")
                .containsExactlyInAnyOrder("bad0", "bad1", "bad2", "bad3", "good");
        assertThat(p.statistics().notificationsAfterExpiry()).as("told once each").isZero();
        assertThat(d.rank().transport().counts().transfers()).isZero();
    }

    @Test
    void aReadThatNeverCompletesIsGivenUpAtItsLimit() {
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        KvTransferParams params = p.prefill("p1", 4, new int[] {0}, 1);
        d.decode("d1", 4, params, new int[] {0});
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        assertThat(d.received()).isEmpty();
        world.elapse(d.config().readTimeout());
        world.tick();
        assertThat(d.abandoned()).as("the request fails at the limit").containsExactly("d1");
        assertThat(d.received()).as("its blocks are not free yet").isEmpty();
        d.rank().transport().failStuckReads();
        world.settle();
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().counts().transfers()).isZero();
    }

    @Test
    void whoWaitsBehindAStuckReadIsNotHeldUpWithoutLimit() {
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("stuck", 4, p.prefill("p1", 4, new int[] {0}, 1), new int[] {0});
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        p.publish();
        d.decode("waits", 4, p.prefill("p2", 4, new int[] {1}, 2), new int[] {1});
        world.tick();
        world.tick(); // the peer has answered; the answer waits for the stuck read
        world.elapse(d.config().readTimeout());
        world.tick();
        assertThat(d.abandoned()).containsExactly("stuck");
        assertThat(d.received()).isEmpty();
        world.elapse(d.config().handshakeTimeout());
        world.tick();
        assertThat(d.failed()).containsExactly("waits");
    }

    @Test
    void blocksAreNotReportedWhileATransferMayStillWriteToThem() {
        d.rank().transport().faults().planRead(new ModelFault.FailAndRefuseRelease(50));
        KvTransferParams params = p.prefill("p1", 4, new int[] {0}, 1);
        d.decode("d1", 4, params, new int[] {0});
        for (int i = 0; i < 40; i++) {
            world.tick();
            assertThat(d.received()).isEmpty();
        }
        world.settle();
        assertThat(d.received()).containsExactly("d1");
        d.fill(new int[] {0}, 77);
        world.settle();
        assertThat(d.holds(new int[] {0}, 77)).as("nothing writes any more").isTrue();
    }

    @Test
    void blocksThatThePeerDoesNotHaveAreRefusedBeforeAnythingIsRead() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        d.fill(new int[] {4, 5}, 50);
        int[] bad = {ModelEngine.BLOCKS, ModelEngine.BLOCKS * ModelEngine.LAYERS, 1 << 30};
        for (int block : bad) {
            KvTransferParams hostile =
                    Params.changed(
                            params,
                            json -> json.putArray("remote_block_ids").addArray().add(3).add(block));
            d.decode("d" + block, 8, hostile, new int[] {4, 5});
            world.settle();
            assertThat(d.failed()).contains("d" + block);
        }
        assertThat(d.rank().transport().readsPosted()).isZero();
        assertThat(d.holds(new int[] {4, 5}, 50)).isTrue();
    }

    @Test
    void aPromptOfAnotherLengthIsCountedAsAFailedTransferAndItsHolderLetsGo() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        d.decode("d1", 12, params, new int[] {4, 5, 6});
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.reason("d1")).contains("tokens here");
        assertThat(d.statistics().failedTransfers()).isEqualTo(1);
        assertThat(d.rank().transport().readsPosted()).isZero();
        assertThat(p.sent()).containsExactly("p1");
    }
}
