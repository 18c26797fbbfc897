package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerReport;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class ReportMergerTest {
    private static WorkerReport report(Set<String> sent, Set<String> received, Set<String> failed) {
        return new WorkerReport(sent, received, failed, TransferStatistics.NONE);
    }

    private static final WorkerReport NOTHING = report(Set.of(), Set.of(), Set.of());

    @Test
    void anIdCountsOnceEveryRankHasNamedIt() {
        ReportMerger merger = new ReportMerger(2);
        assertThat(merger.merge(List.of(report(Set.of("a"), Set.of("b"), Set.of()), NOTHING)))
                .isEqualTo(NOTHING);
        assertThat(merger.merge(List.of(NOTHING, report(Set.of("a"), Set.of(), Set.of()))))
                .isEqualTo(report(Set.of("a"), Set.of(), Set.of()));
        assertThat(merger.merge(List.of(NOTHING, report(Set.of(), Set.of("b"), Set.of()))))
                .isEqualTo(report(Set.of(), Set.of("b"), Set.of()));
    }

    @Test
    void aFailureOnOneRankIsKeptUntilAllEndedAndThenForgotten() {
        ReportMerger merger = new ReportMerger(2);
        assertThat(
                        merger.merge(
                                List.of(
                                        report(Set.of(), Set.of("a"), Set.of("a")),
                                        report(Set.of(), Set.of(), Set.of()))))
                .isEqualTo(NOTHING);
        assertThat(merger.merge(List.of(NOTHING, report(Set.of(), Set.of("a"), Set.of()))))
                .isEqualTo(report(Set.of(), Set.of("a"), Set.of("a")));
        WorkerReport good = report(Set.of(), Set.of("a"), Set.of());
        assertThat(merger.merge(List.of(good, good))).isEqualTo(good);
    }
}
