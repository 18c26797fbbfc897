package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/**
 * Whole transfers between engines of differing tensor parallel and block sizes, over the model
 * transport: each element of the KV cache lies where the reader expects it, and every rank of the
 * holder hears of the end exactly once.
 */
final class RankTransferTest {
    private static final int BLOCK_TOKENS = 4;
    private static final int[] P_BLOCKS = {7, 2, 9, 0, 5, 1, 3, 8, 6, 4, 13, 11};
    private static final int[] D_BLOCKS = {3, 8, 1};
    private static final int[] TOKENS = {1, 3, 4, 5, 8, 10, 12};

    @Test
    void allLegalSizesHeadsAndRatiosMoveEveryElementAndTellEveryRankOnce() {
        int combinations = 0;
        for (int heads : new int[] {1, 2, 4, 6}) {
            for (int d : new int[] {1, 2, 3, 4, 8}) {
                for (int p : new int[] {1, 2, 3, 4, 8}) {
                    for (int ratio : new int[] {1, 2, 4}) {
                        if (isLegal(d, p, heads, ratio)) {
                            transfer(d, p, heads, ratio);
                            combinations++;
                        }
                    }
                }
            }
        }
        assertThat(combinations).isGreaterThan(80);
    }

    private static void transfer(int dSize, int pSize, int heads, int ratio) {
        String what = "D=" + dSize + " P=" + pSize + " heads=" + heads + " ratio=" + ratio;
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", pSize, heads, BLOCK_TOKENS / ratio);
        RankPool d = new RankPool(world, "D", dSize, heads, BLOCK_TOKENS);
        for (int tokens : TOKENS) {
            for (int local = 0; local < tokens; local += BLOCK_TOKENS) {
                String id = what + " tokens=" + tokens + " local=" + local;
                long seed = id.hashCode();
                int pBlocks = Math.ceilDiv(tokens, BLOCK_TOKENS / ratio);
                int[] from = Arrays.copyOf(P_BLOCKS, pBlocks);
                int[] to = Arrays.copyOf(D_BLOCKS, Math.ceilDiv(tokens, BLOCK_TOKENS));
                KvTransferParams params = p.prefill(id, tokens, from, seed);
                byte[] before = d.block(0, 0, to[0]);
                byte[] unused = d.block(dSize - 1, 1, 0);
                assertThat(d.decode("r " + id, tokens, params, to, local))
                        .isEqualTo(tokens - local);
                run(p, d, () -> d.received().contains("r " + id) && p.sent().contains(id), id);
                assertThat(d.failed()).as(id).isEmpty();
                assertThat(d.holds(to, seed, local, tokens)).as(id).isTrue();
                assertThat(p.ranksDoneSending(id)).as(id).isEqualTo(pSize);
                assertThat(d.block(dSize - 1, 1, 0)).as("a foreign block").isEqualTo(unused);
                if (local > 0) {
                    assertThat(d.block(0, 0, to[0])).as("a cached block").isEqualTo(before);
                }
            }
        }
        for (int i = 0; i < 5; i++) {
            p.step();
            d.step();
        }
        assertThat(p.statistics().notificationsAfterExpiry()).as(what).isZero();
        assertThat(p.scheduler().heldRequests()).as(what).isZero();
        assertThat(d.statistics().failedHandshakes()).as(what).isZero();
        assertThat(d.peersLoaded()).as(what).isEqualTo(dSize * Math.max(1, pSize / dSize));
        int lists = d.listsHeld();
        d.releaseAndRestore();
        assertThat(d.listsHeld()).as(what + " lists").isEqualTo(dSize).isLessThan(lists);
    }

    @Test
    void aNoticeReachesEveryRankOnce() {
        for (int[] sizes : new int[][] {{1, 4}, {4, 1}, {2, 4}, {4, 2}, {2, 2}, {1, 8}}) {
            ModelWorld world = new ModelWorld();
            RankPool p = new RankPool(world, "P", sizes[1], 4, BLOCK_TOKENS);
            RankPool d = new RankPool(world, "D", sizes[0], 4, BLOCK_TOKENS);
            KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
            assertThat(d.decode("r1", 8, params, new int[] {1, 2}, 8)).isZero();
            run(p, d, () -> p.sent().contains("p1"), "the notice");
            assertThat(p.ranksDoneSending("p1")).isEqualTo(sizes[1]);
            assertThat(p.statistics().notificationsAfterExpiry()).isZero();
            assertThat(d.readsPosted()).isZero();
        }
    }

    @Test
    void aHolderWaitsForAllItsReaders() {
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", 1, 4, BLOCK_TOKENS);
        RankPool d = new RankPool(world, "D", 4, 4, BLOCK_TOKENS);
        d.transports().getLast().faults().setReadDelay(Duration.ofSeconds(1));
        KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
        d.decode("r1", 8, params, new int[] {1, 2}, 0);
        for (int i = 0; i < 20; i++) {
            tick(p, d);
        }
        assertThat(p.sent()).as("three of four have read").isEmpty();
        assertThat(d.received()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        run(p, d, () -> p.sent().contains("p1") && d.received().contains("r1"), "the last");
        assertThat(d.holds(new int[] {1, 2}, 1, 0, 8)).isTrue();
    }

    @Test
    void aRankThatIsOnlyToldMayMissTheMessageWithoutHarmToTheRead() {
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", 4, 2, BLOCK_TOKENS);
        RankPool d = new RankPool(world, "D", 2, 2, BLOCK_TOKENS);
        d.transports().forEach(transport -> transport.faults().failNotifies(1));
        KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
        d.decode("r1", 8, params, new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the read");
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(new int[] {1, 2}, 1, 0, 8)).isTrue();
        assertThat(d.statistics().failedNotifications()).isEqualTo(2);
        world.elapse(Duration.ofMinutes(1));
        run(p, d, () -> p.sent().contains("p1"), "the lease's end");
    }

    @Test
    void aPieceThatFailsOrIsLateFailsTheWholeReadAndEveryRankIsTold() {
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", 2, 2, BLOCK_TOKENS);
        RankPool d = new RankPool(world, "D", 1, 2, BLOCK_TOKENS);
        KvTransferParams warm = p.prefill("p0", 8, new int[] {3, 4}, 1);
        d.decode("r0", 8, warm, new int[] {3, 4}, 0);
        run(p, d, () -> d.received().contains("r0"), "the first");
        KvTransferParams params = p.prefill("p1", 8, new int[] {1, 2}, 1);
        d.transports().getFirst().faults().planRead(new ModelFault.FailHalfWay());
        d.decode("r1", 8, params, new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1") && p.sent().contains("p1"), "both ranks");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(p.ranksDoneSending("p1")).as("told, though one was not read").isEqualTo(2);
        assertThat(p.statistics().expiredRequests()).isZero();
        KvTransferParams slow = p.prefill("p2", 8, new int[] {5, 6}, 2);
        d.transports().getFirst().faults().setReadDelay(Duration.ofSeconds(40));
        d.decode("r2", 8, slow, new int[] {5, 6}, 0);
        for (int i = 0; d.transports().getFirst().counts().transfers() == 0; i++) {
            tick(p, d);
            assertThat(i).as("ticks until a read begins").isLessThan(20);
        }
        world.elapse(Duration.ofSeconds(40));
        run(p, d, () -> d.received().contains("r2"), "the late one");
        assertThat(d.failed()).containsExactlyInAnyOrder("r1", "r2");
        assertThat(d.statistics().expiredRequests()).isEqualTo(1);
    }

    @Test
    void everyAgentThatIsLoadedFromAnotherAddressGivesWay() {
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", 2, 1, BLOCK_TOKENS);
        RankPool d = new RankPool(world, "D", 1, 1, BLOCK_TOKENS);
        int port = p.scheduler().sideChannelPort();
        Map<RankId, byte[]> served =
                world.sideChannels().served(new SideChannelAddress("127.0.0.1", port));
        for (int rank = 0; rank < 2; rank++) {
            int alias = 50_000 + rank;
            byte[] payload = Objects.requireNonNull(served.get(new RankId(0, rank)));
            world.sideChannels()
                    .serveFor(
                            new SideChannelAddress("127.0.0.1", port),
                            new SideChannelAddress("127.0.0.1", alias),
                            Map.of(new RankId(0, 0), payload));
            KvTransferParams params =
                    Params.changed(
                            p.prefill("p" + rank, 8, new int[] {1, 2}, rank),
                            json -> json.put("remote_port", alias).put("tp_size", 1));
            String id = "alias" + rank;
            d.decode(id, 8, params, new int[] {5, 6}, 0);
            run(p, d, () -> d.received().contains(id), id);
        }
        assertThat(d.peersLoaded()).isEqualTo(2);
        d.decode("r1", 8, p.prefill("p2", 8, new int[] {3, 4}, 2), new int[] {1, 2}, 0);
        run(p, d, () -> d.received().contains("r1"), "the read from the peer itself");
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(new int[] {1, 2}, 2, 0, 8)).isTrue();
        assertThat(d.peersLoaded()).isEqualTo(2);
    }

    @Test
    void mismatchesAreRefusedAtTheHandshakeAndLeaveNothing() {
        assertRefused(new int[] {2, 2, BLOCK_TOKENS}, new int[] {1, 2, 3});
        assertRefused(new int[] {2, 2, 3}, new int[] {2, 2, BLOCK_TOKENS});
        assertRefused(new int[] {2, 4, 2}, new int[] {2, 4, BLOCK_TOKENS});
        assertRefused(new int[] {2, 6, BLOCK_TOKENS}, new int[] {3, 6, BLOCK_TOKENS});
        assertRefused(new int[] {1, 2, BLOCK_TOKENS}, new int[] {2, 2, 2});
    }

    /** Each engine is tensor parallel size, KV heads, and tokens per block. */
    private static void assertRefused(int[] ofD, int[] ofP) {
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", ofP[0], ofP[1], ofP[2]);
        RankPool d = new RankPool(world, "D", ofD[0], ofD[1], ofD[2]);
        int lists = d.listsHeld();
        KvTransferParams params = p.prefill("p1", 4, new int[] {1, 2, 3}, 1);
        assertThat(d.decode("r1", 4, params, new int[] {1, 2, 3}, 0)).isPositive();
        run(p, d, () -> d.received().contains("r1"), "the refusal");
        assertThat(d.failed()).containsExactly("r1");
        assertThat(d.statistics().failedHandshakes()).isPositive();
        assertThat(d.peersLoaded()).isZero();
        assertThat(d.listsHeld()).isEqualTo(lists);
        assertThat(d.readsPosted()).isZero();
    }

    @Test
    void aFalseSizeInARequestCostsTheWorkingPeerNothing() {
        ModelWorld world = new ModelWorld();
        RankPool p = new RankPool(world, "P", 2, 4, BLOCK_TOKENS);
        RankPool d = new RankPool(world, "D", 2, 4, BLOCK_TOKENS);
        List<String> bad = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            KvTransferParams other = p.prefill("b" + i, 8, new int[] {3, 4}, i);
            for (int claimed : new int[] {1, 4, 3, 1_024}) {
                String id = "bad" + i + "-" + claimed;
                bad.add(id);
                d.decode(
                        id,
                        8,
                        Params.changed(other, json -> json.put("tp_size", claimed)),
                        new int[] {5, 6},
                        0);
                run(p, d, () -> d.received().contains(id), id);
            }
            String good = "good" + i;
            KvTransferParams params = p.prefill("p" + i, 8, new int[] {1, 2}, i);
            d.decode(good, 8, params, new int[] {1, 2}, 0);
            run(p, d, () -> d.received().contains(good), good);
            assertThat(d.holds(new int[] {1, 2}, i, 0, 8)).isTrue();
        }
        assertThat(d.failed()).containsExactlyInAnyOrderElementsOf(bad);
        assertThat(d.statistics().handshakes()).as("one for each rank").isEqualTo(2);
    }

    private static void run(RankPool p, RankPool d, BooleanSupplier until, String what) {
        for (int ticks = 0; !until.getAsBoolean(); ticks++) {
            tick(p, d);
            if (ticks > 2_000) {
                throw new AssertionError("never came: " + what);
            }
        }
    }

    private static void tick(RankPool p, RankPool d) {
        p.world().tick();
        p.step();
        d.step();
    }

    private static boolean isLegal(int d, int p, int heads, int ratio) {
        return (d % p == 0 || p % d == 0)
                && (heads % d == 0 || d % heads == 0)
                && (heads % p == 0 || p % heads == 0)
                && (ratio == 1 || Math.min(heads, p) <= Math.min(heads, d));
    }
}
