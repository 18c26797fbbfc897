package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import dev.dormouse.testkit.ModelTransport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** A read in two pieces, one from each rank of its holder. */
final class SplitReadTest {
    private static final int[] BLOCKS = {1, 2};

    private final ModelWorld world = new ModelWorld();
    private final RankPool p = new RankPool(world, "P", 2, 2, 4);
    private final RankPool d = new RankPool(world, "D", 1, 2, 4);
    private final ModelTransport reading = d.transports().getFirst();

    @Test
    void isReportedOnlyWhenItsLastPieceHasEnded() {
        reading.faults().planRead(new ModelFault.ThrowOnPoll());
        reading.faults().planRead(new ModelFault.NeverComplete());
        d.decode("r1", 8, p.prefill("p1", 8, BLOCKS, 1), BLOCKS, 0);
        run(() -> reading.readsPosted() == 2);
        for (int i = 0; i < 50; i++) {
            tick();
        }
        assertThat(d.received()).as("one piece may still be written").isEmpty();
        assertThat(p.sent()).isEmpty();

        reading.failStuckReads();
        run(() -> d.received().contains("r1"));
        assertThat(d.failed()).containsExactly("r1");
        assertThat(reading.counts().transfers()).isZero();
        run(() -> p.sent().contains("p1"));
    }

    @Test
    void hasNoFurtherPieceOnceOneCouldNotBePosted() {
        reading.faults().planRead(new ModelFault.FailPost());
        d.decode("r1", 8, p.prefill("p1", 8, BLOCKS, 1), BLOCKS, 0);

        run(() -> d.received().contains("r1"));
        assertThat(d.failed()).containsExactly("r1");
        assertThat(reading.readsPosted()).isZero();
    }

    private void run(BooleanSupplier until) {
        for (int ticks = 0; !until.getAsBoolean(); ticks++) {
            tick();
            assertThat(ticks).isLessThan(500);
        }
    }

    private void tick() {
        world.tick();
        p.step();
        d.step();
    }
}
