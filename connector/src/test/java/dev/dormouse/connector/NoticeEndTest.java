package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A holder is told that nothing is read. */
final class NoticeEndTest {
    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");

    @Test
    void aPromptThatIsAllCachedHereIsOnlyToldToItsHolder() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        d.decode("d1", 8, params, new int[] {4, 5}, 8);
        world.settle();
        assertThat(d.received()).as("notices are not awaited").isEmpty();
        assertThat(d.rank().transport().readsPosted()).isZero();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void aRequestThatNeverRanIsToldToItsHolder() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        ConnectorRequest request = new ConnectorRequest("d1", 8, params);
        d.scheduler().onArrival(request);
        assertThat(d.scheduler().onFinished(request, FinishKind.FAILED, new int[0], 0))
                .isEqualTo(HandOver.NONE);
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(d.received()).isEmpty();
    }

    @Test
    void aNoticeThatCannotBeGivenFailsNothing() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        p.kill();
        d.decode("d1", 8, params, new int[] {4, 5}, 8);
        world.settle();
        assertThat(d.received()).isEmpty();
        assertThat(d.failed()).isEmpty();
        assertThat(d.statistics().failedHandshakes()).isEqualTo(1);
    }

    @Test
    void whoeverWaitsForTheEndOfANoticeHearsOfItHoweverItEnds() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        notice("told", params);
        world.settle();
        assertThat(d.received()).containsExactly("told");
        assertThat(p.sent()).containsExactly("p1");

        KvTransferParams taken = p.prefill("p2", 8, new int[] {3, 1}, 1);
        ModelEngine other = world.start("O");
        other.decode("o1", 8, taken, new int[] {4, 5});
        world.settle();
        notice("notHeld", taken);
        world.settle();
        assertThat(d.received()).contains("notHeld");

        KvTransferParams gone = p.prefill("p3", 8, new int[] {3, 1}, 1);
        p.kill();
        notice("unreachable", gone);
        world.settle();
        assertThat(d.received()).contains("unreachable");

        d.rank().worker().releaseKvCaches(Duration.ofSeconds(1));
        notice("released", gone);
        world.settle();
        assertThat(d.received()).contains("released");
        assertThat(d.failed()).isEmpty();
    }

    private void notice(String requestId, KvTransferParams params) {
        RemoteSource source = RemoteHandOver.read(params).source();
        ReadOrder order = new ReadOrder(requestId, source, List.of(), List.of(), 0, 0, true);
        d.rank()
                .worker()
                .start(
                        Steps.of(
                                List.of(order),
                                Set.of(),
                                Set.of(),
                                Map.of(),
                                List.of(),
                                world.nanoTime() / 1e9));
    }
}
