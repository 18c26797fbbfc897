package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.transport.KvTransport;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Release and restore where readers map the holder's pages by themselves. */
final class SharedPagesTest {
    private static final Duration LIMIT = Duration.ofMillis(50);
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld(Addressing.MAPPED);
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");
    private int requests;

    @Test
    void eachSleepRevokesWaitsAndReturnsEveryPageAndEachWakeCostsOneHandshake() {
        d.rank().transport().faults().setRevocationDelay(Duration.ofMillis(7));
        for (int cycle = 0; cycle < 10; cycle++) {
            long handshakes = d.statistics().handshakes();
            assertTransfers(cycle);
            assertTransfers(100 + cycle);
            assertThat(d.statistics().handshakes() - handshakes).isEqualTo(1);
            assertThat(d.rank().transport().preparedLoads())
                    .as("loads for which no step has to wait")
                    .isEqualTo(cycle + 1);
            long before = world.nanoTime();
            p.sleep();
            assertThat(world.nanoTime() - before)
                    .isGreaterThanOrEqualTo(Duration.ofMillis(7).toNanos());
            assertThat(p.rank().memory().residentBytes()).isZero();
            assertThat(p.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
            p.wake();
        }
        world.settle();
        assertThat(d.statistics().failedTransfers()).isZero();
        assertThat(p.statistics().revokedMappings()).isEqualTo(10);
    }

    @Test
    void bothMaySleepAndNobodyWaitsForTheOther() {
        d.rank().transport().faults().setRevocationDelay(Duration.ofMillis(3));
        for (int cycle = 0; cycle < 5; cycle++) {
            assertTransfers(cycle);
            p.sleep();
            d.sleep();
            assertThat(d.rank().memory().residentBytes()).isZero();
            d.wake();
            p.wake();
        }
        assertTransfers(99);
        assertThat(d.statistics().handshakes()).isEqualTo(6);
    }

    @Test
    void whatWasRevokedIsDroppedWithoutARequestThatNeedsIt() {
        assertTransfers(1);
        KvTransport transport = d.rank().transport();
        assertThat(d.statistics().routes())
                .containsEntry(transport.name(), new RouteStatistics(1, transferBytes(), 1));
        p.sleep();
        world.tick();
        assertThat(d.rank().transport().counts())
                .as("neither a peer nor a list of it")
                .isEqualTo(new ModelCounts(1, 1, 0, 0));
        assertThat(d.statistics().routes())
                .containsEntry(transport.name(), new RouteStatistics(1, transferBytes(), 0));
        assertThat(world.handshakes().pending()).as("nobody needs it").isZero();
    }

    @Test
    void aReaderThatHangsMakesTheReleaseFailWithItsNameAndTheHolderServesOn() {
        assertTransfers(1);
        long epoch = p.scheduler().epoch();
        long handshakes = d.statistics().handshakes();
        d.rank().transport().faults().setHangs(true);
        long before = world.nanoTime();

        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT))
                .withMessageContaining("memory in use by")
                .withMessageContaining(d.rank().transport().agentName());

        assertThat(Duration.ofNanos(world.nanoTime() - before)).isLessThan(LIMIT.multipliedBy(2));
        assertThat(p.rank().worker().isReleased()).isFalse();
        assertThat(p.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
        p.rank().worker().restoreKvCaches(); // as an engine does that undoes a sleep
        p.publish();
        assertThat(p.scheduler().epoch()).isEqualTo(epoch + 1);
        d.rank().transport().faults().setHangs(false);
        assertTransfers(2);
        assertTransfers(3);
        assertThat(d.statistics().handshakes() - handshakes).isEqualTo(1);
        p.sleep();
        assertThat(p.rank().memory().residentBytes()).isZero();
        p.wake();
        assertTransfers(4);
    }

    @Test
    void aReaderThatHangsAndGoesOnReadsRightBytesThroughItsOldMapping() {
        assertTransfers(1);
        d.rank().transport().faults().setHangs(true);
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT));
        p.rank().worker().restoreKvCaches();
        assertTransfers(2);
    }

    @Test
    void aReleaseThatTimesOutLetsItsMemoryBeMappedAgain() {
        assertTransfers(1);
        d.rank().transport().faults().setHangs(true);
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT));
        d.rank().transport().faults().setHangs(false);
        assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void aReaderThatDiesIsNotWaitedFor() {
        assertTransfers(1);
        d.rank().transport().faults().setHangs(true);
        d.kill();
        p.sleep();
        assertThat(p.rank().memory().residentBytes()).isZero();
    }

    @Test
    void aReadInFlightFailsByPolicyAndItsBlocksAreFree() {
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(30));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        p.sleep();
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.reason("d1")).contains("revoked");
        assertThat(d.rank().transport().counts().transfers()).isZero();
    }

    @Test
    void aReadThatCannotBeBrokenOffKeepsTheHolderAwake() {
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT))
                .withMessageContaining(d.rank().transport().agentName());
        p.rank().worker().restoreKvCaches();
        p.publish();
        d.rank().transport().failStuckReads();
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertTransfers(2);
        p.sleep();
        assertThat(p.rank().memory().residentBytes()).isZero();
    }

    @Test
    void whatWaitsToBeReadIsAskedForAgainWhenItsHolderRefusedToSleep() {
        assertTransfers(1);
        long handshakes = d.statistics().handshakes();
        KvTransferParams params = p.prefill("p9", 8, P_BLOCKS, 9);
        assertThat(p.rank().worker().isReleased()).isFalse();
        world.forget(d); // its engine stands still, its transport does not
        p.rank().worker().prepareRelease(LIMIT);
        p.rank().worker().restoreKvCaches();
        d.decode("d9", 8, params, D_BLOCKS);
        for (int i = 0; i < 10; i++) {
            world.tick();
            d.step();
        }
        assertThat(d.received()).contains("d9");
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 9)).isTrue();
        assertThat(d.statistics().handshakes() - handshakes).isEqualTo(1);
    }

    @Test
    void ifOneRanksReaderHangsNoRankIsReleasedAndAllServeOn() {
        ModelEngine wide = world.start(world.config("W").tpSize(2));
        ModelEngine reader = world.start(world.config("R").tpSize(2));
        KvTransferParams first = wide.prefill("w1", 8, P_BLOCKS, 1);
        reader.decode("r1", 8, first, D_BLOCKS);
        world.settle();
        assertThat(reader.holds(D_BLOCKS, 1)).isTrue();
        ModelEngine.Rank hanging = reader.ranks().get(1);
        hanging.transport().faults().setHangs(true);

        wide.ranks().getFirst().worker().prepareRelease(LIMIT);
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> wide.ranks().get(1).worker().prepareRelease(LIMIT))
                .withMessageContaining(hanging.transport().agentName());
        wide.ranks().forEach(rank -> rank.worker().restoreKvCaches());
        wide.publish();

        assertThat(wide.ranks())
                .allSatisfy(
                        rank -> {
                            assertThat(rank.worker().isReleased()).isFalse();
                            assertThat(rank.transport().counts().registrations()).isEqualTo(1);
                        });
        hanging.transport().faults().setHangs(false);
        KvTransferParams second = wide.prefill("w2", 8, P_BLOCKS, 2);
        reader.decode("r2", 8, second, D_BLOCKS);
        world.settle();
        assertThat(reader.failed()).isEmpty();
        assertThat(reader.holds(D_BLOCKS, 2)).isTrue();
        wide.sleep();
        assertThat(wide.ranks())
                .allSatisfy(rank -> assertThat(rank.memory().residentBytes()).isZero());
    }

    @Test
    void withoutRevocationTheReaderGetsOldBytesNoErrorAndNothingIsReturned() {
        ModelEngine faulty = world.start(world.config("F").skipReregistration(true));
        KvTransferParams before = faulty.prefill("f1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, before, D_BLOCKS);
        world.settle();
        long awake = faulty.rank().memory().residentBytes();
        faulty.sleep();
        assertThat(faulty.rank().memory().residentBytes()).isEqualTo(awake);
        faulty.wake();
        assertThat(faulty.rank().memory().residentBytes()).isEqualTo(2 * awake);
        KvTransferParams after = faulty.prefill("f2", 8, P_BLOCKS, 2);
        d.decode("d2", 8, after, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 1)).as("the bytes from before the sleep").isTrue();
    }

    private static long transferBytes() {
        return (long) P_BLOCKS.length * ModelEngine.LAYERS * ModelEngine.BLOCK_BYTES;
    }

    /** One prompt from P to D, byte for byte. */
    private void assertTransfers(long content) {
        String id = "r" + requests++;
        KvTransferParams params = p.prefill("p" + id, 8, P_BLOCKS, content);
        d.decode("d" + id, 8, params, D_BLOCKS);
        world.settle();
        assertThat(d.received()).contains("d" + id);
        assertThat(d.failed()).doesNotContain("d" + id);
        assertThat(d.holds(D_BLOCKS, content)).isTrue();
        assertThat(p.sent()).contains("p" + id);
    }
}
