package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.testkit.ModelTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Release and restore of a rank's registration around a sleep. */
final class SleepCycleTest {
    private static final Duration LIMIT = Duration.ofMillis(20);
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");
    private int requests;

    @Test
    void afterAWakeOfTheHolderTheReaderGetsTheNewBytesWithOneHandshake() {
        for (int cycle = 0; cycle < 10; cycle++) {
            long before = d.statistics().handshakes();
            assertTransfers(cycle);
            assertTransfers(100 + cycle);
            assertThat(d.statistics().handshakes() - before).isEqualTo(1);
            p.sleep();
            p.wake();
        }
        assertThat(d.statistics().failedTransfers()).isZero();
        assertThat(p.scheduler().epoch()).isEqualTo(11);
    }

    @Test
    void afterAWakeOfTheReaderItsNewPagesAreFilledWithOneHandshake() {
        for (int cycle = 0; cycle < 10; cycle++) {
            long before = d.statistics().handshakes();
            assertTransfers(cycle);
            assertThat(d.statistics().handshakes() - before).isEqualTo(1);
            d.sleep();
            d.wake();
        }
        world.settle();
        assertThat(d.statistics().failedTransfers()).isZero();
        assertThat(d.statistics().registrations()).isEqualTo(11);
    }

    @Test
    void bothMaySleep() {
        for (int cycle = 0; cycle < 5; cycle++) {
            assertTransfers(cycle);
            p.sleep();
            d.sleep();
            d.wake();
            p.wake();
        }
        assertTransfers(99);
        assertThat(d.statistics().handshakes()).isEqualTo(6);
    }

    @Test
    void aWakeThatDoesNotRestoreTheKvCacheCostsNoHandshake() {
        assertTransfers(1);
        long epoch = p.scheduler().epoch();
        p.rank().worker().restoreKvCaches();
        assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        assertThat(p.scheduler().epoch()).isEqualTo(epoch);
    }

    @Test
    void asleepNothingPinsThePagesAndNothingIsLoaded() {
        assertTransfers(1);
        long awake = d.rank().memory().residentBytes();
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 0));
        for (int cycle = 0; cycle < 3; cycle++) {
            d.sleep();
            assertThat(d.rank().memory().residentBytes()).isZero();
            assertThat(d.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
            assertThat(d.rank().worker().isReleased()).isTrue();
            d.wake();
            assertThat(d.rank().memory().residentBytes()).isEqualTo(awake);
            assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
            assertTransfers(cycle);
        }
    }

    @Test
    void releaseAndRestoreMayBeRepeated() {
        world.forget(p);
        NixlWorker worker = p.rank().worker();
        worker.restoreKvCaches();
        TransportMetadata before = worker.payload().metadata().agentMetadata();
        for (int cycle = 0; cycle < 2; cycle++) {
            worker.releaseKvCaches(LIMIT);
            worker.releaseKvCaches(LIMIT);
            assertThatIllegalStateException().isThrownBy(worker::payload);
            worker.restoreKvCaches();
            worker.restoreKvCaches();
            assertThat(p.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
            TransportMetadata after = worker.payload().metadata().agentMetadata();
            assertThat(after).isNotEqualTo(before);
            before = after;
        }
        assertThat(worker.poll().statistics().registrations()).isEqualTo(3);
    }

    @Test
    void thePayloadDiffersAfterACycleOnlyInTheTransportsBytes() {
        AgentMetadata before = p.rank().worker().payload().metadata();
        p.sleep();
        p.wake();
        AgentMetadata after = p.rank().worker().payload().metadata();
        assertThat(after)
                .usingRecursiveComparison()
                .ignoringFields("agentMetadata")
                .isEqualTo(before);
    }

    @Test
    void releaseWaitsForAReadInFlight() {
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(15));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        runUntilPosted();
        long before = world.nanoTime();

        d.rank().worker().releaseKvCaches(LIMIT);

        assertThat(world.nanoTime() - before).isGreaterThan(Duration.ofMillis(10).toNanos());
        assertThat(d.holds(D_BLOCKS, 1)).as("the data arrived before the pages go").isTrue();
        world.settle();
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
    }

    @Test
    void aReleaseIsPreparedByWaitingForReadsWhileEverythingStaysRegistered() {
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(15));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        runUntilPosted();
        d.rank().worker().prepareRelease(LIMIT);
        assertThat(d.rank().transport().counts().transfers()).isZero();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(d.rank().worker().isReleased()).isFalse();
        assertTransfers(2);
        d.sleep();
        d.rank().worker().prepareRelease(LIMIT);
        assertThat(d.rank().worker().isReleased()).isTrue();
    }

    @Test
    void releaseWaitsForAHandshakeAndTheReadThatItIsFor() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        d.step();
        assertThat(world.handshakes().pending()).isEqualTo(1);

        d.rank().worker().releaseKvCaches(LIMIT);

        assertThat(world.handshakes().pending()).isZero();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        world.settle();
        assertThat(d.received()).containsExactly("d1");
    }

    @Test
    void releaseWaitsForAFailedTransferThatHoldsOnToItsBlocks() {
        d.rank().transport().faults().planRead(new ModelFault.FailAndRefuseRelease(10));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        runUntilPosted();
        d.rank().worker().releaseKvCaches(LIMIT);
        assertThat(d.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
    }

    @Test
    void aReleaseThatTimesOutKeepsEverythingAndServesOn() {
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        runUntilPosted();
        TransportMetadata metadata = d.rank().worker().payload().metadata().agentMetadata();

        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> d.rank().worker().releaseKvCaches(LIMIT))
                .withMessageContaining("d1")
                .withMessageContaining("'P'")
                .withMessageContaining("PT0.02S");

        assertThat(d.rank().worker().isReleased()).isFalse();
        assertThat(d.rank().worker().payload().metadata().agentMetadata()).isEqualTo(metadata);
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 1));
        KvTransferParams other = p.prefill("p2", 4, new int[] {8}, 2);
        d.decode("d2", 4, other, new int[] {9});
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        assertThat(d.holds(new int[] {9}, 2)).as("serves on").isTrue();
    }

    @Test
    void aReleaseThatFindsAPendingHandshakeAtItsLimitKeepsEverything() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        d.step();
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(() -> d.rank().worker().releaseKvCaches(Duration.ZERO))
                .withMessageContaining("handshake with 'P' at " + p.address());
        world.settle();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
    }

    @Test
    void aDeregistrationThatFailsLeavesTheRankServing() {
        p.rank().transport().faults().failDeregistrations(1);
        assertThatThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT))
                .isInstanceOf(TransportException.class);
        assertThat(p.rank().worker().isReleased()).isFalse();
        assertTransfers(1);
        p.sleep();
        p.wake();
        assertTransfers(2);
    }

    @Test
    void aListThatCannotBeReleasedLeavesTheRankServingAndTheNextSleepReleasesIt() {
        p.rank().transport().faults().failListCloses(1);
        assertThatThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT))
                .isInstanceOf(TransportException.class);
        assertThat(p.rank().worker().isReleased()).isFalse();
        assertTransfers(1);
        p.sleep();
        assertThat(p.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
        p.wake();
        assertTransfers(2);
    }

    @Test
    void aRankThatCannotBuildItsListAgainSaysSoAndIsRestoredLater() {
        p.rank().transport().faults().failDeregistrations(1);
        p.rank().transport().faults().failPreparations(1);
        assertThatThrownBy(() -> p.rank().worker().releaseKvCaches(LIMIT))
                .isInstanceOf(TransportException.class);
        assertThat(p.rank().worker().isReleased()).isFalse();
        assertThatIllegalStateException()
                .isThrownBy(() -> p.rank().worker().payload())
                .withMessageContaining("LIST_LOST");
        p.rank().worker().restoreKvCaches();
        p.publish();
        assertTransfers(1);
        assertThat(p.rank().transport().counts()).isEqualTo(new ModelCounts(1, 1, 0, 0));
    }

    @Test
    void aRegistrationThatAFailedRestoreLeftGoesBeforeThePages() {
        p.sleep();
        p.rank().memory().map(p.rank().address(0, 0), p.regionBytes());
        p.rank().transport().faults().failPreparations(1);
        p.rank().transport().faults().failDeregistrations(1);
        assertThatThrownBy(() -> p.rank().worker().restoreKvCaches())
                .isInstanceOf(TransportException.class);
        assertThat(p.rank().transport().counts().registrations()).isEqualTo(1);
        p.rank().worker().releaseKvCaches(LIMIT);
        assertThat(p.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
        p.rank().memory().unmap(p.rank().address(0, 0), p.regionBytes());
        p.wake();
        assertTransfers(2);
    }

    @Test
    void aRegistrationThatFailsLeavesTheRankReleasedAndMayBeRepeated() {
        p.sleep();
        p.rank().memory().map(p.rank().address(0, 0), p.regionBytes());
        p.rank().transport().faults().failRegistrations(1);
        assertThatThrownBy(() -> p.rank().worker().restoreKvCaches())
                .isInstanceOf(TransportException.class);
        assertThat(p.rank().worker().isReleased()).isTrue();
        assertThat(p.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
        p.rank().worker().restoreKvCaches();
        p.publish();
        assertTransfers(1);
    }

    @Test
    void aRegionOutsideTheRegisteredMemoryLeavesNothingRegistered() {
        ModelMemory memory = new ModelMemory(64);
        ModelTransport transport = world.fabric().open("crooked", memory);
        PullWorker worker =
                new PullWorker(p.config(), 0, transport, world.surroundings(), () -> {});
        long base = memory.allocate(64);
        KvCacheRegions crooked =
                new KvCacheRegions(
                        List.of(new KvCacheRegions.Region("l0", base, 2, 64, 64)),
                        List.of(new MemoryRange(base, 64, MemoryKind.DRAM, 0)),
                        ModelEngine.BLOCK_TOKENS,
                        "LBHNC",
                        MemoryKind.DRAM,
                        0);
        assertThatThrownBy(() -> worker.registerKvCaches(crooked))
                .isInstanceOf(TransportException.class);
        assertThat(transport.counts()).isEqualTo(ModelCounts.NONE);
    }

    @Test
    void aReadOrderedWhileReleasedFailsAtOnce() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.rank().worker().releaseKvCaches(LIMIT);
        d.decode("d1", 8, params, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.reason("d1")).contains("released");
        assertThat(d.statistics().failedTransfers()).isEqualTo(1);
        ConnectorRequest unread = new ConnectorRequest("d2", 8, params);
        HandOver _ = d.scheduler().onFinished(unread, FinishKind.ABORTED, new int[0], 0);
        world.settle();
        assertThat(d.statistics().failedNotifications()).isEqualTo(1);
        assertThat(d.failed()).containsExactly("d1");
        assertThat(world.sideChannels().fetches()).isZero();
    }

    @Test
    void leasesRunOnWhileAsleep() {
        p.prefill("p1", 8, P_BLOCKS, 1);
        world.tick();
        p.sleep();
        world.elapse(Duration.ofSeconds(31));
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        p.wake();
        world.elapse(Duration.ofSeconds(60));
        assertTransfers(2);
        assertThat(p.statistics().expiredRequests()).isEqualTo(1);
    }

    @Test
    void closingWhileReleasedDeregistersNothingTwice() {
        d.sleep();
        d.rank().transport().faults().failDeregistrations(1); // there must be none to fail

        d.rank().worker().close();
        d.rank().worker().close();
        assertThat(d.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
        world.forget(d);
    }

    @Test
    void withoutReRegistrationOfTheHolderTheReaderGetsOldBytesAndNoError() {
        ModelEngine faulty = world.start(world.config("F").skipReregistration(true));
        KvTransferParams before = faulty.prefill("f1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, before, D_BLOCKS);
        world.settle();
        long awake = faulty.rank().memory().residentBytes();

        faulty.sleep();
        assertThat(faulty.rank().memory().residentBytes())
                .as("sleep frees nothing")
                .isEqualTo(awake);
        faulty.wake();
        assertThat(faulty.rank().memory().residentBytes()).isEqualTo(2 * awake);
        KvTransferParams after = faulty.prefill("f2", 8, P_BLOCKS, 2);
        d.decode("d2", 8, after, D_BLOCKS);
        world.settle();

        assertThat(d.received()).contains("d2");
        assertThat(d.failed()).as("nobody notices").isEmpty();
        assertThat(d.holds(D_BLOCKS, 2)).isFalse();
        assertThat(d.holds(D_BLOCKS, 1)).as("the bytes from before the sleep").isTrue();
    }

    @Test
    void withoutReRegistrationOfTheReaderNothingArrivesAndNoError() {
        ModelEngine faulty = world.start(world.config("F").skipReregistration(true));
        faulty.sleep();
        faulty.wake();
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        faulty.decode("f1", 8, params, D_BLOCKS);
        world.settle();
        assertThat(faulty.received()).containsExactly("f1");
        assertThat(faulty.failed()).isEmpty();
        assertThat(faulty.holds(D_BLOCKS, 1)).isFalse();
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

    private void runUntilPosted() {
        for (int i = 0; i < 10 && d.rank().transport().readsPosted() == 0; i++) {
            world.tick();
        }
        assertThat(d.rank().transport().readsPosted()).isEqualTo(1);
    }
}
