package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * The last moment of a read, from what is known of its holder: whose clock is 100 s ahead, to
 * within a second.
 */
final class ReadDeadlineRulesTest {
    private static final SideChannelAddress ADDRESS = new SideChannelAddress("127.0.0.1", 5600);
    private static final ClockOffset CLOCK = new ClockOffset(100e9, 1e9);
    private static final long ARRIVED = seconds(10);
    private static final long NOW = seconds(12);

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine d = world.start("D");
    private final Renewals renewals = new Renewals();

    @Test
    void anExchangeTellsTheOffsetAtItsMiddleAndHalfItsLengthAsTheError() {
        ClockOffset clock = ClockOffset.of(130, seconds(10), seconds(12));
        assertThat(clock).isEqualTo(new ClockOffset(119e9, 1e9));
        assertThat(clock.toLocal(150)).as("not later than it may be").isEqualTo(seconds(30));
    }

    @Test
    void theShorterOrElseTheNewerExchangeIsTheBetterOne() {
        ClockOffset rough = new ClockOffset(1, 20);
        ClockOffset fine = new ClockOffset(2, 10);
        ClockOffset newer = new ClockOffset(3, 10);
        assertThat(fine.orBetter(null)).isSameAs(fine);
        assertThat(fine.orBetter(rough)).isSameAs(fine);
        assertThat(rough.orBetter(fine)).isSameAs(fine);
        assertThat(newer.orBetter(fine)).isSameAs(newer);
    }

    @Test
    void renewalsReachTwoThirdsOfALeaseAndMarginsTakeASixthOrFiveSeconds() {
        assertThat(ReadDeadline.extensionNanos(seconds(30))).isEqualTo(seconds(20));
        assertThat(ReadDeadline.extensionNanos(seconds(5))).isEqualTo(seconds(3));
        assertThat(ReadDeadline.extensionNanos(seconds(1))).isZero();
        assertThat(ReadDeadline.marginNanos(seconds(12))).isEqualTo(seconds(2));
        assertThat(ReadDeadline.marginNanos(seconds(300))).isEqualTo(seconds(5));
    }

    @Test
    void aDeadlineThatIsToldIsMovedToThisClock() {
        RemoteLease lease = new RemoteLease(130, 30);
        assertThat(deadline(lease, null, loaded("pi", CLOCK))).isEqualTo(seconds(24));
    }

    @Test
    void aDeadlineIsNeverLaterThanAWholeLeaseAfterTheRequestCame() {
        RemoteLease lease = new RemoteLease(200, 30);
        assertThat(deadline(lease, null, loaded("pi", CLOCK))).isEqualTo(seconds(35));
        RemoteLease unlimited = new RemoteLease(200, 0);
        assertThat(deadline(unlimited, null, loaded("pi", CLOCK)))
                .as("without its length it counts as it is told")
                .isEqualTo(seconds(94));
    }

    @Test
    void theHoldersOwnAnswerCountsBeforeAllElse() {
        RemoteLease lease = new RemoteLease(130, 30);
        HoldAnswer held = new HoldAnswer(true, false, seconds(50), 4, "pi");
        assertThat(deadline(lease, held, loaded("pi", CLOCK))).isEqualTo(seconds(45));
        HoldAnswer elsewhere = new HoldAnswer(true, false, seconds(50), 5, "pi");
        assertThat(deadline(lease, elsewhere, loaded("pi", CLOCK))).isEqualTo(NOW);
        HoldAnswer freed = new HoldAnswer(false, false, seconds(50), 4, "pi");
        assertThat(deadline(lease, freed, loaded("pi", CLOCK))).isEqualTo(NOW);
    }

    @Test
    void ofAPeerThatCouldHaveToldNothingIsReadUnheard() {
        assertThat(deadline(RemoteLease.UNKNOWN, null, loaded("pi", CLOCK))).isEqualTo(NOW);
        assertThat(deadline(new RemoteLease(130, 30), null, loaded("pi", null))).isEqualTo(NOW);
    }

    @Test
    void ofAPeerThatCannotTellAWholeLeaseAndItsRenewalsCount() {
        LoadedEngine vllm = loaded(null, CLOCK);
        assertThat(deadline(RemoteLease.UNKNOWN, null, vllm)).isEqualTo(seconds(35));
        renewals.sent(List.of("p1"), seconds(30), seconds(20), seconds(5));
        assertThat(deadline(RemoteLease.UNKNOWN, null, vllm)).isEqualTo(seconds(45));
    }

    @Test
    void aDecodeEngineOfVllmIsLeftFiveSecondsWhateverTheLeasesHere() {
        ConnectorConfig brief = world.config("brief").leaseDuration(Duration.ofSeconds(6)).build();
        RemoteLease told = new RemoteLease(130, 0);
        assertThat(deadline(told, null, loaded(null, CLOCK), brief)).isEqualTo(seconds(24));
    }

    private long deadline(RemoteLease lease, @Nullable HoldAnswer hold, LoadedEngine source) {
        return deadline(lease, hold, source, d.config());
    }

    private long deadline(
            RemoteLease lease,
            @Nullable HoldAnswer hold,
            LoadedEngine source,
            ConnectorConfig config) {
        RemoteSource remote = new RemoteSource("P", "pi", "p1", "127.0.0.1", 5600, 1, 1, 4, lease);
        WaitingOrder waiting =
                new WaitingOrder(
                        new ReadOrder("d1", remote, List.of(1), List.of(7), 0, 4, true),
                        NOW,
                        ARRIVED);
        if (hold != null) {
            waiting.markClaimed(hold);
        }
        return ReadDeadline.of(waiting, source, renewals, config, NOW);
    }

    /** Of a peer's ranks nothing is needed here. */
    private LoadedEngine loaded(@Nullable String instanceId, @Nullable ClockOffset clock) {
        return LoadedEngine.load(
                d.rank().transport(),
                new FetchedEngine(
                        "P",
                        ADDRESS,
                        new RegistrationIdentity(instanceId, 4, 4),
                        true,
                        RankMapping.of(0, 1, 1, 2),
                        List.of(),
                        clock),
                _ -> {});
    }

    private static long seconds(long value) {
        return TimeUnit.SECONDS.toNanos(value);
    }
}
