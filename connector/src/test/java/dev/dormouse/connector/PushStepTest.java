package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What a push connector's scheduler tells its ranks. */
final class PushStepTest {
    private static final int TOKENS = 8;
    private static final int[] BLOCKS = {3, 1, 7};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start(world.pushConfig("P"));
    private final ModelEngine d = world.start(world.pushConfig("D"));

    @Test
    void theRanksAreToldOnceWhatIsHeldAndInWhichBlocks() {
        p.prefill("p1", TOKENS, BLOCKS, 1);
        PushStep step = p.scheduler().step().push();
        assertThat(step.handOvers()).isEqualTo(Map.of("p1", List.of(3, 1)));
        assertThat(step.epoch()).isEqualTo(1);
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);
        assertThat(p.scheduler().step().push().handOvers()).isEmpty();
    }

    @Test
    void theEpochIsThatOfTheLastRegistration() {
        assertThat(p.scheduler().epoch()).isEqualTo(1);
        p.publish();
        assertThat(p.scheduler().epoch()).isEqualTo(2);
        assertThat(p.scheduler().step().push().epoch()).isEqualTo(2);
    }

    @Test
    void whatTheRanksWereNotToldBeforeAWithdrawalTheyAreNotToldAtAll() {
        p.prefill("p1", TOKENS, BLOCKS, 1);
        p.scheduler().withdraw();
        assertThat(p.scheduler().step().push().handOvers()).isEmpty();
        assertThat(world.sideChannels().served(p.address())).isEmpty();
    }

    @Test
    void anEngineThatDrainsTellsItsRanks() {
        p.scheduler().drain(true);
        assertThat(p.scheduler().step().draining()).isTrue();
        p.scheduler().drain(false);
        assertThat(p.scheduler().step().draining()).isFalse();
    }

    @Test
    void aRequestThatEndsWhileItWaitsIsCancelledOnce() {
        KvTransferParams params = p.prefill("p1", TOKENS, BLOCKS, 1);
        ConnectorRequest request = d.decode("d1", TOKENS, params, BLOCKS);
        HandOver _ = d.scheduler().onFinished(request, FinishKind.ABORTED, BLOCKS, 0);
        assertThat(d.scheduler().step().push().cancelled()).containsExactly("d1");
        assertThat(d.scheduler().step().push().cancelled()).isEmpty();
    }

    @Test
    void aRequestThatNeedsNoWriteIsNeverCancelled() {
        KvTransferParams params = p.prefill("p1", TOKENS, BLOCKS, 1);
        ConnectorRequest request = d.decode("d1", TOKENS, params, BLOCKS, TOKENS);
        HandOver _ = d.scheduler().onFinished(request, FinishKind.STOPPED, BLOCKS, TOKENS);
        assertThat(d.scheduler().step().push().cancelled()).isEmpty();
    }

    @Test
    void aRequestThatWasReportedIsNotCancelledWhenItEnds() {
        KvTransferParams params = p.prefill("p1", TOKENS, BLOCKS, 1);
        ConnectorRequest request = d.decode("d1", TOKENS, params, BLOCKS);
        world.settle();
        assertThat(d.received()).containsExactly("d1");
        HandOver _ = d.scheduler().onFinished(request, FinishKind.LENGTH, BLOCKS, TOKENS);
        assertThat(d.scheduler().step().push().cancelled()).isEmpty();
    }
}
