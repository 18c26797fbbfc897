package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** For how long both sides remember a hand-over. */
final class HoldMemoryTest {
    private static final long MEMORY = seconds(480);

    private final SpentHandOvers spent = new SpentHandOvers(MEMORY, 1_000);
    private final HeldRequests held =
            new HeldRequests(
                    Duration.ofSeconds(30), Duration.ofSeconds(480), new HoldBook("pi", () -> 0));

    @Test
    void aHandOverThatIsSpentIsRememberedAsLongAsAnyLease() {
        spent.add(source("p1"), seconds(5));
        spent.add(source("p2"), seconds(6));
        spent.forget(seconds(5) + MEMORY - 1);
        assertThat(spent.contains(source("p1"))).isTrue();
        spent.forget(seconds(5) + MEMORY);
        assertThat(spent.contains(source("p1"))).isFalse();
        assertThat(spent.contains(source("p2"))).isTrue();
        spent.forget(seconds(6) + MEMORY);
        assertThat(spent.contains(source("p2"))).isFalse();
        spent.forget(seconds(7) + MEMORY);
    }

    @Test
    void aHandOverThatIsSpentAgainIsRememberedFromThenOn() {
        spent.add(source("p1"), seconds(5));
        spent.add(source("p2"), seconds(6));
        spent.add(source("p1"), seconds(9));
        spent.forget(seconds(8) + MEMORY);
        assertThat(spent.contains(source("p1"))).isTrue();
        assertThat(spent.contains(source("p2"))).isFalse();
    }

    @Test
    void aHoldThatNoRankEndsIsEndedOneLeaseAfterItsLimit() {
        RemoteLease lease = held.hold("p1", seconds(5));
        assertThat(lease).isEqualTo(new RemoteLease(35, 30));
        assertThat(held.takeLeases(seconds(6))).containsExactly(entry("p1", 35.0));
        assertThat(held.takeLeases(seconds(515) - 1)).isEmpty();
        assertThat(held.takeLeases(seconds(515))).containsExactly(entry("p1", 515.0));
        assertThat(held.takeLeases(seconds(516))).isEmpty();
    }

    private static RemoteSource source(String requestId) {
        return new RemoteSource("P", "pi", requestId, "127.0.0.1", 5600, 1, 1, 4);
    }

    private static long seconds(long value) {
        return TimeUnit.SECONDS.toNanos(value);
    }
}
