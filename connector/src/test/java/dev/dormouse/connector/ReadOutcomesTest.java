package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Each end of a read is reported once, and only if somebody waits for it. */
final class ReadOutcomesTest {
    private static final Failure FAILURE = new Failure(Failure.Type.TRANSFER_FAILED, "it broke");

    private final ReadOutcomes outcomes = new ReadOutcomes(new TransferFailureLog("D"));

    @Test
    void everythingIsReportedOnce() {
        outcomes.done(order("done", true));
        outcomes.failed(order("failed", true), FAILURE);
        outcomes.abandoned(order("abandoned", true), FAILURE);
        WorkerReport report = take();
        assertThat(report.finishedReceiving()).containsExactlyInAnyOrder("done", "failed");
        assertThat(report.failedReceiving()).containsExactly("failed");
        assertThat(report.abandonedReceiving()).containsExactly("abandoned");
        assertThat(report.failureReasons())
                .containsOnly(entry("failed", "it broke"), entry("abandoned", "it broke"));
        WorkerReport next = take();
        assertThat(next.isEmpty()).isTrue();
        assertThat(next.failureReasons()).isEmpty();
    }

    @Test
    void whatIsLetGoHasFailedAndIsNotAbandonedAnyMore() {
        ReadOrder order = order("a", true);
        outcomes.abandoned(order, FAILURE);
        outcomes.letGo(order);
        WorkerReport report = take();
        assertThat(report.abandonedReceiving()).isEmpty();
        assertThat(report.finishedReceiving()).containsExactly("a");
        assertThat(report.failedReceiving()).containsExactly("a");
        assertThat(report.failureReasons()).containsExactly(entry("a", "it broke"));
    }

    @Test
    void whatNobodyWaitsForIsNotReported() {
        outcomes.done(order("done", false));
        outcomes.failed(order("failed", false), FAILURE);
        outcomes.abandoned(order("abandoned", false), FAILURE);
        outcomes.untold(order("untold", false), "lost");
        WorkerReport report = take();
        assertThat(report.isEmpty()).isTrue();
        assertThat(report.failedReceiving()).isEmpty();
        assertThat(report.failureReasons()).isEmpty();
    }

    private WorkerReport take() {
        return outcomes.take(Set.of(), Map.of(), Set.of(), Set.of(), TransferStatistics.NONE);
    }

    private static ReadOrder order(String requestId, boolean awaited) {
        RemoteSource source = new RemoteSource("P", "pi", "p1", "127.0.0.1", 5600, 1, 1, 4);
        return new ReadOrder(requestId, source, List.of(1), List.of(7), 0, 4, awaited);
    }
}
