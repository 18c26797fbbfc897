package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/**
 * Pushes between engines of differing tensor parallel sizes: each element of the KV cache lies
 * where the waiting engine expects it, on every one of its ranks.
 */
final class PushRankTest {
    private static final int BLOCK_TOKENS = 4;
    private static final int[] P_BLOCKS = {7, 2, 9};
    private static final int[] D_BLOCKS = {3, 8, 1};
    private static final int[] TOKENS = {1, 4, 7, 12};

    @Test
    void allLegalSizesAndHeadsMoveEveryElementToEveryRank() {
        int combinations = 0;
        for (int heads : new int[] {1, 2, 4, 6}) {
            for (int d : new int[] {1, 2, 3, 4, 8}) {
                for (int p : new int[] {1, 2, 3, 4, 8}) {
                    if (isLegal(d, p, heads)) {
                        transfer(d, p, heads);
                        combinations++;
                    }
                }
            }
        }
        assertThat(combinations).isGreaterThan(30);
    }

    private static void transfer(int dSize, int pSize, int heads) {
        String what = "D=" + dSize + " P=" + pSize + " heads=" + heads;
        ModelWorld world = new ModelWorld();
        RankPool p = pool(world, "P", pSize, heads);
        RankPool d = pool(world, "D", dSize, heads);
        int transfers = 0;
        for (int tokens : TOKENS) {
            for (int local = 0; local < tokens; local += BLOCK_TOKENS) {
                String id = what + " tokens=" + tokens + " local=" + local;
                long seed = id.hashCode();
                int blocks = Math.ceilDiv(tokens, BLOCK_TOKENS);
                int[] from = Arrays.copyOf(P_BLOCKS, blocks);
                int[] to = Arrays.copyOf(D_BLOCKS, blocks);
                KvTransferParams params = p.prefill(id, tokens, from, seed);
                byte[] before = d.block(0, 0, to[0]);
                byte[] unused = d.block(dSize - 1, 1, 0);
                d.decode("r " + id, tokens, params, to, local);
                run(p, d, () -> d.received().contains("r " + id) && p.sent().contains(id), id);
                assertThat(d.failed()).as(id).isEmpty();
                assertThat(d.holds(to, seed, local, tokens)).as(id).isTrue();
                assertThat(p.ranksDoneSending(id)).as(id).isEqualTo(pSize);
                assertThat(d.block(dSize - 1, 1, 0)).as("a foreign block").isEqualTo(unused);
                if (local > 0) {
                    assertThat(d.block(0, 0, to[0])).as("a cached block").isEqualTo(before);
                }
                transfers++;
            }
        }
        assertThat(p.writesPosted())
                .as(what + ": each rank of D by each rank that has its heads, once")
                .isEqualTo((long) transfers * Math.max(dSize, pSize));
        assertThat(p.scheduler().heldRequests()).as(what).isZero();
    }

    @Test
    void oneRankThatFailsWithholdsSuccessOnBothSides() {
        ModelWorld world = new ModelWorld();
        RankPool p = pool(world, "P", 2, 2);
        RankPool d = pool(world, "D", 1, 2);
        p.transports().getLast().faults().planRead(new ModelFault.FailHalfWay());
        KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
        d.decode("r1", 8, params, new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the failure");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(p.sent()).as("one of two ranks has sent it").isEmpty();
        world.elapse(Duration.ofMinutes(1));
        run(p, d, () -> p.sent().contains("p1"), "the lease's end");
    }

    @Test
    void oneTargetThatFailsWithholdsTheHoldersSuccess() {
        ModelWorld world = new ModelWorld();
        RankPool p = pool(world, "P", 1, 2);
        RankPool d = pool(world, "D", 2, 2);
        p.transports().getFirst().faults().planRead(new ModelFault.FailHalfWay());
        KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
        d.decode("r1", 8, params, new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the failure");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(p.sent()).isEmpty();
        world.elapse(Duration.ofMinutes(1));
        run(p, d, () -> p.sent().contains("p1"), "the lease's end");
    }

    /** It would not wait for a write's end before its blocks are another prompt's. */
    @Test
    void aRankThatHasNotRegisteredIsNotWrittenForAnother() {
        ModelWorld world = new ModelWorld();
        RankPool p = pool(world, "P", 1, 2);
        RankPool d = pool(world, "D", 2, 2);
        KvTransferParams warm = p.prefill("p0", 8, new int[] {3, 4}, 1);
        d.decode("r0", 8, warm, new int[] {3, 4}, 0);
        run(p, d, () -> d.received().contains("r0"), "the first");
        long before = p.writesPosted();
        d.transports().getLast().faults().failNotifies(1);
        d.decode("r1", 8, p.prefill("p1", 8, new int[] {1, 2}, 1), new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the failure");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(p.writesPosted()).isEqualTo(before);
        assertThat(p.sent()).as("nobody else can have it").contains("p1");
    }

    @Test
    void aRegistrationThatNotAllRanksTookFailsAndIsTakenBack() {
        ModelWorld world = new ModelWorld();
        RankPool p = pool(world, "P", 2, 2);
        RankPool d = pool(world, "D", 1, 2);
        d.transports().getFirst().faults().failNotifies(1);
        KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
        d.decode("r1", 8, params, new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the failure");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(p.sent()).isEmpty();
    }

    @Test
    void blocksOfAnotherSizeAreRefusedAtTheHandshake() {
        ModelWorld world = new ModelWorld();
        RankPool p = pool(world, "P", 1, 2);
        RankPool d =
                new RankPool(
                        world,
                        "D",
                        1,
                        CompatibilityFactors.of("m", "d", 2, 8, RankPool.LAYERS).pushed(),
                        2 * BLOCK_TOKENS);
        d.decode("r1", 8, p.prefill("p1", 8, new int[] {1, 2}, 1), new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the refusal");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(p.writesPosted()).isZero();
    }

    private static RankPool pool(ModelWorld world, String id, int size, int heads) {
        return new RankPool(
                world,
                id,
                size,
                CompatibilityFactors.of("m", "d", heads, 8, RankPool.LAYERS).pushed(),
                BLOCK_TOKENS);
    }

    private static void run(RankPool p, RankPool d, BooleanSupplier until, String what) {
        for (int ticks = 0; !until.getAsBoolean(); ticks++) {
            p.world().tick();
            p.step();
            d.step();
            if (ticks > 2_000) {
                throw new AssertionError("never came: " + what);
            }
        }
    }

    private static boolean isLegal(int d, int p, int heads) {
        return (d % p == 0 || p % d == 0)
                && (heads % d == 0 || d % heads == 0)
                && (heads % p == 0 || p % heads == 0);
    }
}
