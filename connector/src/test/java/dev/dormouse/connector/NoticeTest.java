package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** A holder hears that its prompt is not needed. */
final class NoticeTest {
    private final PullScheduler scheduler =
            new PullScheduler(
                    Params.config("E").build(),
                    new ModelSideChannels().surroundings(() -> 0, 0),
                    () -> {});

    @Test
    void aRequestThatNeverRanOrdersOneNoticeAndNothingElse() {
        ConnectorRequest request = new ConnectorRequest("d1", 10, Params.remote(_ -> {}));
        scheduler.onArrival(request);
        assertThat(scheduler.onFinished(request, FinishKind.ABORTED, new int[0], 0))
                .isEqualTo(HandOver.NONE);

        ConnectorStep step = scheduler.step();
        ReadOrder notice = step.reads().getFirst();
        assertThat(step.reads()).hasSize(1);
        assertThat(notice.remote().requestId()).isEqualTo("p1");
        assertThat(notice.localBlocks()).isEmpty();
        assertThat(notice.awaited()).isFalse();
        assertThat(step.heartbeats()).isEmpty();
        assertThat(scheduler.step().reads()).isEmpty();
    }

    /** Its read has told the holder, or will. */
    @Test
    void aRequestThatWasReadOrdersNoNoticeWhenItEnds() {
        for (FinishKind kind : FinishKind.values()) {
            ConnectorRequest request = new ConnectorRequest("d" + kind, 10, Params.remote(_ -> {}));
            scheduler.onArrival(request);
            scheduler.onAllocated(request, new int[] {1, 2, 3}, 0, 10);
            assertThat(scheduler.step().reads())
                    .extracting(ReadOrder::awaited)
                    .isEqualTo(List.of(true));
            HandOver _ = scheduler.onFinished(request, kind, new int[] {1, 2, 3}, 10);
            assertThat(scheduler.step().reads()).isEmpty();
        }
    }
}
