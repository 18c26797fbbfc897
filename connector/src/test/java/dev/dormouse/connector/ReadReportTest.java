package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import dev.dormouse.testkit.ModelFault;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What a reader reports of its reads. */
final class ReadReportTest {
    private final ModelPair pair = new ModelPair();
    private final ModelWorld world = pair.world();
    private final ModelEngine d = pair.d();

    @Test
    void aReadIsASampleOfItsTimeAndBytes() {
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(50));
        pair.assertTransfers(1);
        assertThat(d.statistics().transfers()).hasSize(1);
        TransferStatistics.TransferSample sample = d.statistics().transfers().getFirst();
        assertThat(sample.durationSeconds()).isCloseTo(0.05, within(0.01));
        assertThat(sample.bytes())
                .isEqualTo(
                        (long) ModelPair.P_BLOCKS.length
                                * ModelEngine.LAYERS
                                * ModelEngine.BLOCK_BYTES);
    }

    @Test
    void aReadThatCameTooLateIsNoSample() {
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(32));
        d.decode("late", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        world.elapse(Duration.ofSeconds(32));
        world.settle();
        assertThat(d.failed()).containsExactly("late");
        assertThat(d.statistics().transfers()).isEmpty();
    }

    @Test
    void whyAReadFailedIsTold() {
        d.rank().transport().faults().planRead(new ModelFault.FailHalfWay());
        d.decode("failing", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("failing");
        assertThat(d.reason("failing")).contains("injected fault");
    }

    @Test
    void aReadIsAbandonedOnceAndItsReasonIsToldThen() {
        d.rank().transport().faults().planRead(new ModelFault.FailAndRefuseRelease(5));
        d.decode("failing", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        for (int i = 0; i < 20 && d.abandoned().isEmpty(); i++) {
            world.tick();
        }
        assertThat(d.abandoned()).containsExactly("failing");
        assertThat(d.reason("failing")).contains("injected fault");
        WorkerReport last = d.rank().worker().poll();
        for (int i = 0; i < 20 && last.finishedReceiving().isEmpty(); i++) {
            assertThat(last.isEmpty()).as("nothing new").isTrue();
            last = d.rank().worker().poll();
        }
        assertThat(last.failedReceiving()).containsExactly("failing");
        assertThat(last.failureReasons()).as("was told").isEmpty();
    }

    @Test
    void aReadWhoseTransferCannotBeReleasedHasNotEnded() {
        d.rank().transport().faults().planRead(new ModelFault.ThrowOnRelease(3));
        d.decode("slow", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        for (int i = 0; i < 20 && !d.holds(ModelPair.D_BLOCKS, 1); i++) {
            world.tick();
        }
        world.tick();
        assertThat(d.received()).as("the transport still has the blocks").isEmpty();
        world.settle();
        assertThat(d.received()).containsExactly("slow");
        assertThat(d.failed()).isEmpty();
        assertThat(d.rank().transport().counts().transfers()).isZero();
    }

    @Test
    void aSleepThatIsRefusedTellsWhatIsReadAndForHowLong() {
        world.elapse(Duration.ofHours(1)); // whatever the clock shows
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("hanging", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        world.elapse(Duration.ofMinutes(1));
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(d::sleep)
                .withMessageContaining("read of request hanging from engine='P'")
                .withMessageContaining("for PT1M0.2")
                .withMessageNotContaining("failed");
        world.elapse(Duration.ofMinutes(1));
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(d::sleep)
                .withMessageContaining("failed but not released");
    }
}
