package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.entry;

import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Ids of several ranks become one report. */
final class RankReportsTest {
    private static final WorkerReport EMPTY = report(Set.of(), Set.of(), Set.of());

    @Test
    void anIdComesOutOnceAllRanksHaveReportedIt() {
        RankReports reports = new RankReports(3);
        WorkerReport r = report(Set.of("s"), Set.of("r"), Set.of());
        assertThat(reports.merge(List.of(r, EMPTY, EMPTY)).isEmpty()).isTrue();
        assertThat(reports.merge(List.of(EMPTY, EMPTY, r)).isEmpty()).isTrue();
        assertThat(reports.merge(List.of(r, EMPTY, r)).isEmpty()).as("repeated").isTrue();
        WorkerReport merged = reports.merge(List.of(EMPTY, r, EMPTY));
        assertThat(merged.isEmpty()).isFalse();
        assertThat(merged.finishedSending()).containsExactly("s");
        assertThat(merged.finishedReceiving()).containsExactly("r");
        assertThat(merged.failedReceiving()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, EMPTY, EMPTY)).isEmpty()).isTrue();
    }

    @Test
    void aFailureComesOutTogetherWithTheLastRank() {
        RankReports reports = new RankReports(2);
        WorkerReport failed = report(Set.of(), Set.of("r"), Set.of("r"));
        WorkerReport fine = report(Set.of(), Set.of("r"), Set.of());
        assertThat(reports.merge(List.of(failed, EMPTY)).failedReceiving()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, fine)).failedReceiving()).containsExactly("r");
        assertThat(reports.merge(List.of(fine, fine)).failedReceiving())
                .as("a later request of that id starts anew")
                .isEmpty();
    }

    @Test
    void whatOneRankGivesUpIsGivenUpAtOnceAndFinishedWithTheLast() {
        RankReports reports = new RankReports(2);
        WorkerReport abandoned =
                new WorkerReport(
                        Set.of(),
                        Map.of(),
                        Set.of(),
                        Set.of(),
                        Set.of(),
                        Set.of("r"),
                        Map.of(),
                        Set.of(),
                        TransferStatistics.NONE,
                        List.of());
        WorkerReport merged = reports.merge(List.of(EMPTY, abandoned));
        assertThat(merged.abandonedReceiving()).containsExactly("r");
        assertThat(merged.finishedReceiving()).isEmpty();
        WorkerReport failed = report(Set.of(), Set.of("r"), Set.of("r"));
        WorkerReport fine = report(Set.of(), Set.of("r"), Set.of());
        assertThat(reports.merge(List.of(fine, EMPTY)).isEmpty()).isTrue();
        assertThat(reports.merge(List.of(EMPTY, failed)).failedReceiving()).containsExactly("r");
    }

    @Test
    void theReasonOfTheRankThatFailedFirstComesOutWithTheRequestAndOnce() {
        RankReports reports = new RankReports(2);
        assertThat(reports.merge(List.of(failed("broken"), EMPTY)).failureReasons()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, failed("late"))).failureReasons())
                .containsExactly(entry("r", "broken"));
        assertThat(reports.merge(List.of(EMPTY, EMPTY)).failureReasons()).isEmpty();
        WorkerReport again = report(Set.of(), Set.of("r"), Set.of("r"));
        assertThat(reports.merge(List.of(again, again)).failureReasons())
                .as("of another request of that id nothing is known")
                .isEmpty();
    }

    private static WorkerReport failed(String reason) {
        return new WorkerReport(
                Set.of(),
                Map.of(),
                Set.of(),
                Set.of("r"),
                Set.of("r"),
                Set.of(),
                Map.of("r", reason),
                Set.of(),
                TransferStatistics.NONE,
                List.of());
    }

    @Test
    void whatWasReadUnclaimedComesOutOnceAllRanksSaySoAndNotAfterItWasSent() {
        RankReports reports = new RankReports(2);
        WorkerReport read = readUnclaimed("s");
        assertThat(read.isEmpty()).isFalse();
        assertThat(reports.merge(List.of(read, EMPTY)).readUnclaimed()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, read)).readUnclaimed()).containsExactly("s");
        assertThat(reports.merge(List.of(read, EMPTY)).readUnclaimed()).isEmpty();
        WorkerReport sent = report(Set.of("s"), Set.of(), Set.of());
        assertThat(reports.merge(List.of(sent, sent)).readUnclaimed()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, read)).readUnclaimed())
                .as("another request of that id")
                .isEmpty();
    }

    private static WorkerReport readUnclaimed(String id) {
        return new WorkerReport(
                Set.of(),
                Map.of(),
                Set.of(id),
                Set.of(),
                Set.of(),
                Set.of(),
                Map.of(),
                Set.of(),
                TransferStatistics.NONE,
                List.of());
    }

    @Test
    void aReportOfNothingButStatisticsIsNotEmpty() {
        StatisticsRecorder recorder = new StatisticsRecorder();
        recorder.handshake(false);
        TransferStatistics statistics = recorder.take();
        assertThat(statistics.handshakes()).isEqualTo(1);
        assertThat(statistics.rehandshakes()).isZero();
        assertThat(new WorkerReport(Set.of(), Set.of(), Set.of(), statistics).isEmpty()).isFalse();
        assertThat(EMPTY.isEmpty()).isTrue();
    }

    @Test
    void aHoldIsRenewedAsFarAsTheRankThatRenewedItLeast() {
        RankReports reports = new RankReports(2);
        assertThat(reports.merge(List.of(renewed(50), EMPTY)).renewedSending()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, renewed(45))).renewedSending())
                .containsExactly(entry("s", 45.0));
        assertThat(reports.merge(List.of(EMPTY, renewed(60))).renewedSending())
                .containsExactly(entry("s", 50.0));
        WorkerReport sent = report(Set.of("s"), Set.of(), Set.of());
        assertThat(reports.merge(List.of(sent, sent)).renewedSending()).isEmpty();
        assertThat(reports.merge(List.of(EMPTY, renewed(99))).renewedSending()).isEmpty();
    }

    private static WorkerReport renewed(double deadline) {
        return new WorkerReport(
                Set.of(),
                Map.of("s", deadline),
                Set.of(),
                Set.of(),
                Set.of(),
                Set.of(),
                Map.of(),
                Set.of(),
                TransferStatistics.NONE,
                List.of());
    }

    @Test
    void statisticsAreSummedAtOnce() {
        TransferStatistics.TransferSample sample =
                new TransferStatistics.TransferSample(0.5, 0.1, 100, 2);
        TransferStatistics one =
                new TransferStatistics(
                        List.of(sample),
                        1,
                        2,
                        3,
                        4,
                        5,
                        6,
                        7,
                        8,
                        9,
                        10,
                        11,
                        12,
                        Map.of("x", new RouteStatistics(1, 2, 3)));
        WorkerReport report = new WorkerReport(Set.of(), Set.of(), Set.of(), one);
        assertThat(new RankReports(2).merge(List.of(report, report)).statistics())
                .isEqualTo(
                        new TransferStatistics(
                                List.of(sample, sample),
                                2,
                                4,
                                6,
                                8,
                                10,
                                12,
                                14,
                                16,
                                18,
                                20,
                                22,
                                24,
                                Map.of("x", new RouteStatistics(2, 4, 6))));
    }

    @Test
    void inAnyOrderEveryIdComesOutExactlyOnceAndFailsIfAnyRankFailed() {
        Seeded.forAll(
                100,
                random -> {
                    int ranks = random.nextInt(1, 5);
                    RankReports reports = new RankReports(ranks);
                    List<List<String>> todo = new ArrayList<>();
                    Set<String> failing = new HashSet<>();
                    for (int rank = 0; rank < ranks; rank++) {
                        List<String> ids = new ArrayList<>();
                        for (int i = 0; i < 6; i++) {
                            ids.add(random.nextInt(ids.size() + 1), "r" + i);
                        }
                        todo.add(ids);
                    }
                    List<String> out = new ArrayList<>();
                    Set<String> failed = new HashSet<>();
                    while (out.size() < 6) {
                        List<WorkerReport> step = new ArrayList<>();
                        for (List<String> ids : todo) {
                            if (ids.isEmpty() || random.nextBoolean()) {
                                step.add(EMPTY);
                                continue;
                            }
                            String id = ids.removeLast();
                            boolean fails = random.nextInt(6) == 0;
                            if (fails) {
                                failing.add(id);
                            }
                            step.add(report(Set.of(), Set.of(id), fails ? Set.of(id) : Set.of()));
                        }
                        WorkerReport merged = reports.merge(step);
                        out.addAll(merged.finishedReceiving());
                        failed.addAll(merged.failedReceiving());
                    }
                    assertThat(out).doesNotHaveDuplicates();
                    assertThat(failed).isEqualTo(failing);
                });
    }

    @Test
    void aMissingRankIsAnError() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RankReports(2).merge(List.of(EMPTY)));
        assertThatIllegalArgumentException().isThrownBy(() -> new RankReports(0));
    }

    private static WorkerReport report(Set<String> sent, Set<String> received, Set<String> failed) {
        return new WorkerReport(sent, received, failed, TransferStatistics.NONE);
    }
}
