package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

/** Until when a rank holds a request, with a scheduler whose clock stands elsewhere. */
final class LeaseClockTest {
    private final StatisticsRecorder statistics = new StatisticsRecorder();
    private final SendLedger ledger =
            new SendLedger(Duration.ofSeconds(20), Duration.ofSeconds(60), statistics);
    private final Set<String> finished = new HashSet<>();

    @Test
    void aLeaseEndsAtItsDeadlineOnTheRanksClock() {
        lease("a");
        ledger.expire(seconds(35) - 1, finished, _ -> false);
        assertThat(finished).isEmpty();
        assertThat(ledger.holds("a")).isTrue();
        ledger.expire(seconds(35), finished, _ -> false);
        assertThat(finished).containsExactly("a");
        assertThat(ledger.holds("a")).isFalse();
        assertThat(ledger.knows("a")).isFalse();
        assertThat(statistics.take().expiredRequests()).isEqualTo(1);
    }

    @Test
    void whatIsBusyDoesNotExpire() {
        lease("a");
        ledger.expire(seconds(35), finished, "a"::equals);
        assertThat(finished).isEmpty();
        ledger.expire(seconds(36), finished, _ -> false);
        assertThat(finished).containsExactly("a");
    }

    @Test
    void aRenewalIsReportedOnceOnTheSchedulersClock() {
        lease("a");
        renew("a", 25);
        assertThat(ledger.takeRenewed()).containsExactly(entry("a", 1_040.0));
        assertThat(ledger.takeRenewed()).isEmpty();
        ledger.expire(seconds(45) - 1, finished, _ -> false);
        assertThat(finished).isEmpty();
        ledger.expire(seconds(45), finished, _ -> false);
        assertThat(finished).containsExactly("a");
    }

    @Test
    void aRenewalThatProlongsNothingIsNotReported() {
        lease("a");
        renew("a", 10);
        renew("a", 15);
        assertThat(ledger.takeRenewed()).isEmpty();
    }

    @Test
    void noRenewalReachesBeyondTheLimit() {
        lease("a");
        renew("a", 30);
        renew("a", 49);
        renew("a", 64);
        assertThat(ledger.takeRenewed()).containsExactly(entry("a", 1_060.0));
        ledger.expire(seconds(65), finished, _ -> false);
        assertThat(finished).containsExactly("a");
    }

    @Test
    void whatIsNotProcessedIsNotKnownAnyMore() {
        take(step(Set.of("a"), Set.of(), Map.of(), Set.of()), _ -> false);
        assertThat(ledger.knows("a")).isTrue();
        take(step(Set.of(), Set.of("a"), Map.of(), Set.of()), _ -> false);
        assertThat(ledger.knows("a")).isFalse();
    }

    @Test
    void whatWasReadBeforeItsLeaseCameIsForgottenWithIt() {
        take(step(Set.of("a"), Set.of(), Map.of(), Set.of()), _ -> false);
        ledger.complete(new Notification.Completion("a", 1, true), "reader", finished);
        assertThat(finished).isEmpty();
        take(step(Set.of(), Set.of(), Map.of("a", 1_030.0), Set.of()), _ -> false);
        assertThat(finished).containsExactly("a");
        assertThat(ledger.knows("a")).isFalse();
        assertThat(ledger.holds("a")).isFalse();
        finished.clear();
        lease("a");
        assertThat(ledger.holds("a")).as("the id may be used again").isTrue();
        assertThat(finished).isEmpty();
    }

    @Test
    void whatIsRevokedEndsAtOnceUnlessItIsBusy() {
        lease("a");
        lease("b");
        take(step(Set.of(), Set.of(), Map.of(), Set.of("a", "b", "unknown")), "b"::equals);
        assertThat(finished).containsExactly("a");
        assertThat(ledger.holds("a")).isFalse();
        assertThat(ledger.holds("b")).isTrue();
        assertThat(statistics.take().revokedRequests()).isEqualTo(1);
    }

    @Test
    void whatWasSentIsHeldNoMore() {
        lease("a");
        ledger.sent("a", finished);
        ledger.sent("unknown", finished);
        assertThat(finished).containsExactly("a");
        assertThat(ledger.holds("a")).isFalse();
        assertThat(ledger.knows("a")).isFalse();
    }

    /** Held from 5 to 35 s of the rank, which are 1000 to 1030 s of the scheduler. */
    private void lease(String id) {
        take(step(Set.of(id), Set.of(), Map.of(id, 1_030.0), Set.of()), _ -> false);
    }

    private void take(ConnectorStep step, Predicate<String> busy) {
        ledger.take(step, seconds(5), finished, busy);
    }

    private void renew(String id, long atSeconds) {
        ledger.renew(new Notification.Renewal(List.of(id)), seconds(atSeconds));
    }

    private static ConnectorStep step(
            Set<String> inBatch,
            Set<String> notProcessed,
            Map<String, Double> leases,
            Set<String> revoked) {
        return new ConnectorStep(
                List.of(),
                inBatch,
                notProcessed,
                leases,
                List.of(),
                1_000,
                false,
                revoked,
                List.of(),
                0,
                PushStep.NONE,
                List.of());
    }

    private static long seconds(long value) {
        return TimeUnit.SECONDS.toNanos(value);
    }
}
