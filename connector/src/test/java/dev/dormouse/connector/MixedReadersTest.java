package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.transport.PeerMessage;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/**
 * A router that gives the same parameters to an engine of this product's, which claims what it
 * reads, and to one of vLLM's, which cannot: over a transport on which whoever reads freed blocks
 * gets another prompt's bytes.
 */
final class MixedReadersTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld(Addressing.VIRTUAL);
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");

    @Test
    void vllmsCompletionDoesNotFreeWhatAnotherHasClaimed() {
        readSlowly();
        vllmSays("vllm", "p1:1");
        tick(50);
        assertThat(p.sent()).isEmpty();
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(p.sent()).as("the claimant's word frees them").containsExactly("p1");
        assertThat(p.statistics().notificationsAfterExpiry()).isZero();
    }

    @Test
    void aClaimThatComesBetweenVllmsCompletionAndItsReportIsKept() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        world.tick();
        vllmSays("vllm", "p1:1");
        WorkerReport read = p.rank().worker().poll();
        assertThat(read.readUnclaimed()).containsExactly("p1");
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        d.decode("d1", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        p.scheduler().onReport(read);
        tick(50);
        assertThat(p.sent()).isEmpty();
        world.settle();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void whatVllmHasReadIsFreedAndNobodyCanClaimItAnyMore() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        world.tick();
        vllmSays("vllm", "p1:1");
        p.step(); // takes the message
        d.decode("d1", 8, params, D_BLOCKS);
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.rank().transport().readsPosted()).isZero();
        assertThat(p.statistics().revokedRequests()).as("it was read").isZero();
        assertThat(p.statistics().expiredLeases()).isZero();
    }

    @Test
    void ranksOfTwoReadersDoNotAddUp() {
        p.prefill("p1", 8, P_BLOCKS, 1);
        world.tick();
        vllmSays("vllm-0", "p1:2");
        vllmSays("ours-0", "DORMOUSE_CLAIMED:p1:2");
        tick(5);
        assertThat(p.sent()).isEmpty();
        vllmSays("ours-1", "DORMOUSE_CLAIMED:p1:2");
        tick(5);
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void everyRankOfTheHolderMustHaveBeenRead() {
        ModelEngine wide = world.start(world.config("wide").tpSize(2));
        wide.prefill("p1", 8, P_BLOCKS, 1);
        world.tick();
        say(wide.ranks().get(0), "vllm", "p1:1");
        tick(5);
        assertThat(wide.sent()).isEmpty();
        say(wide.ranks().get(1), "vllm", "p1:1");
        tick(5);
        assertThat(wide.sent()).containsExactly("p1");
        assertThat(wide.scheduler().heldRequests()).isZero();
    }

    @Test
    void aClaimantThatDiedHoldsTheBlocksNoLongerThanItsLease() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("d1", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        d.kill();
        vllmSays("vllm", "p1:1");
        world.elapse(Duration.ofSeconds(29));
        tick(5);
        assertThat(p.sent()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        tick(5);
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void whatWasClaimedStaysClaimedWhenThePayloadsAreWithdrawn() {
        readSlowly();
        p.scheduler().withdraw();
        vllmSays("vllm", "p1:1");
        tick(50);
        assertThat(p.sent()).isEmpty();
        world.settle();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void whatNobodyClaimedIsFreedByVllmsCompletionAlsoAfterAWithdrawal() {
        p.prefill("p1", 8, P_BLOCKS, 1);
        world.tick();
        p.scheduler().withdraw();
        vllmSays("vllm", "p1:1");
        tick(5);
        assertThat(p.sent()).containsExactly("p1");
    }

    private void readSlowly() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        d.decode("d1", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
    }

    private void vllmSays(String agent, String text) {
        say(p.rank(), agent, text);
    }

    private void say(ModelEngine.Rank rank, String agent, String text) {
        world.fabric()
                .inject(rank.transport().agentName(), new PeerMessage(agent, text.getBytes(UTF_8)));
    }

    private void tick(int times) {
        for (int i = 0; i < times; i++) {
            world.tick();
        }
    }
}
