package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A holder's books on a rank whose clock is not the scheduler's; times in seconds. */
final class SendLedgerTest {
    private static final double SCHEDULER_CLOCK = 10_000;
    private static final double RANK_CLOCK = 5;

    private final StatisticsRecorder statistics = new StatisticsRecorder();
    private final SendLedger ledger =
            new SendLedger(Duration.ofSeconds(20), Duration.ofMinutes(10), statistics);
    private final Set<String> finished = new HashSet<>();

    @Test
    void aLeaseIsMovedToTheRanksOwnClock() {
        take(Set.of("r"), Set.of(), Map.of("r", SCHEDULER_CLOCK + 480));
        expire(RANK_CLOCK + 479);
        assertThat(finished).isEmpty();
        expire(RANK_CLOCK + 480);
        assertThat(finished).containsExactly("r");
        assertThat(statistics.take().expiredRequests()).isEqualTo(1);
    }

    @Test
    void aRenewalIsReportedInTheSchedulersTime() {
        take(Set.of("r"), Set.of(), Map.of("r", SCHEDULER_CLOCK + 30));
        ledger.renew(new Notification.Renewal(List.of("r", "unknown")), nanos(RANK_CLOCK + 15));
        assertThat(ledger.takeRenewed()).isEqualTo(Map.of("r", SCHEDULER_CLOCK + 35));
        expire(RANK_CLOCK + 34);
        assertThat(finished).isEmpty();
        expire(RANK_CLOCK + 35);
        assertThat(finished).containsExactly("r");
    }

    @Test
    void aRequestThatEndedWithoutAHandOverIsForgotten() {
        take(Set.of("r"), Set.of(), Map.of());
        assertThat(ledger.knows("r")).isTrue();
        take(Set.of(), Set.of("r"), Map.of());
        assertThat(ledger.knows("r")).isFalse();

        ledger.complete(new Notification.Completion("r", 1), "reader", finished);
        assertThat(finished).as("whose blocks are free").isEmpty();
        assertThat(statistics.take().notificationsAfterExpiry()).isEqualTo(1);
    }

    private void take(Set<String> inBatch, Set<String> notProcessed, Map<String, Double> leases) {
        ledger.take(
                Steps.of(List.of(), inBatch, notProcessed, leases, List.of(), SCHEDULER_CLOCK),
                nanos(RANK_CLOCK),
                finished,
                _ -> false);
    }

    private void expire(double rankClock) {
        ledger.expire(nanos(rankClock), finished, _ -> false);
    }

    private static long nanos(double seconds) {
        return (long) (seconds * 1e9);
    }
}
