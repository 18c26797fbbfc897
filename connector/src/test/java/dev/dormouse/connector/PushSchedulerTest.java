package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The push connector's scheduler's half by itself. */
final class PushSchedulerTest {
    private static final int TOKENS = 8;
    private static final int[] BLOCKS = {3, 1, 7};

    private final ModelWorld world = new ModelWorld();
    private final SchedulerConnector holder = world.start(world.pushConfig("P")).scheduler();
    private final SchedulerConnector waiting = world.start(world.pushConfig("D")).scheduler();

    @Test
    void aFinishedPromptIsGivenToTheRanksOnceWithItsLease() {
        prefill("p1", Params.prefill(), FinishKind.LENGTH, TOKENS);

        ConnectorStep step = holder.step();
        assertThat(step.push().handOvers()).containsExactly(entry("p1", List.of(3, 1)));
        assertThat(step.leases()).containsOnlyKeys("p1");
        assertThat(step.inBatch()).containsExactly("p1");
        ConnectorStep next = holder.step();
        assertThat(next.push().handOvers()).isEmpty();
        assertThat(next.leases()).isEmpty();
    }

    @Test
    void whatIsNotHandedOverIsNotGivenToTheRanks() {
        for (FinishKind kind : new FinishKind[] {FinishKind.ABORTED, FinishKind.FAILED}) {
            assertThat(prefill("p" + kind, Params.prefill(), kind, TOKENS))
                    .isEqualTo(HandOver.NONE);
        }
        assertThat(prefill("plain", null, FinishKind.LENGTH, TOKENS)).isEqualTo(HandOver.NONE);
        HandOver empty = prefill("empty", Params.prefill(), FinishKind.LENGTH, 0);
        assertThat(empty.holdBlocks()).isFalse();
        assertThat(empty.params()).isNotNull();

        ConnectorStep step = holder.step();
        assertThat(step.push().handOvers()).isEmpty();
        assertThat(step.leases()).isEmpty();
        assertThat(holder.heldRequests()).isZero();
    }

    @Test
    void aPromptThatIsAllHereIsRegisteredNowhere() {
        ConnectorRequest request = arrived("d1", "p1");
        assertThat(waiting.externalTokens(request, TOKENS)).isZero();
        waiting.onAllocated(request, BLOCKS, TOKENS, 0);

        assertThat(waiting.step().reads())
                .singleElement()
                .satisfies(
                        notice -> {
                            assertThat(notice.awaited()).isFalse();
                            assertThat(notice.localBlocks()).isEmpty();
                        });
    }

    @Test
    void aRegistrationIsOrderedOnceAndTakenBackOnlyIfItsRequestStillWaits() {
        ConnectorRequest served = arrived("d1", "p1");
        ConnectorRequest aborted = arrived("d2", "p2");
        waiting.onAllocated(served, BLOCKS, 0, TOKENS);
        waiting.onAllocated(aborted, BLOCKS, 0, TOKENS);
        assertThat(waiting.step().reads())
                .extracting(ReadOrder::requestId)
                .containsExactly("d1", "d2");
        assertThat(waiting.externalTokens(served, 0)).isZero();
        waiting.onAllocated(served, BLOCKS, 0, 0);
        assertThat(waiting.step().reads()).isEmpty();

        waiting.onReport(
                new WorkerReport(Set.of(), Set.of("d1"), Set.of(), TransferStatistics.NONE));
        HandOver _ = waiting.onFinished(served, FinishKind.LENGTH, BLOCKS, TOKENS + 1);
        HandOver _ = waiting.onFinished(aborted, FinishKind.ABORTED, BLOCKS, 0);
        assertThat(waiting.step().push().cancelled()).containsExactly("d2");
        assertThat(waiting.step().push().cancelled()).isEmpty();
    }

    private HandOver prefill(
            String id, @Nullable KvTransferParams params, FinishKind kind, int computedTokens) {
        ConnectorRequest request = new ConnectorRequest(id, TOKENS, params);
        holder.onArrival(request);
        holder.onAllocated(request, BLOCKS, 0, 0);
        return holder.onFinished(request, kind, BLOCKS, computedTokens);
    }

    private ConnectorRequest arrived(String id, String held) {
        KvTransferParams params =
                prefill(held, Params.prefill(), FinishKind.LENGTH, TOKENS).params();
        ConnectorRequest request = new ConnectorRequest(id, TOKENS, params);
        waiting.onArrival(request);
        return request;
    }
}
