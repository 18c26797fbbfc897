package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Until when a holder begins to write for an engine that waits, whose clock is another. */
final class PushDeadlineTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};
    private static final Duration AHEAD = Duration.ofDays(2);

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p =
            world.start(
                    world.pushConfig("P").pushTimeout(Duration.ofSeconds(800)),
                    Duration.ofDays(-3));
    private final ModelEngine d = world.start(world.pushConfig("D"), AHEAD);

    @Test
    void theMarginIsAQuarterAndAtMostTwoMinutes() {
        assertThat(PushDeadline.marginNanos(Duration.ofSeconds(100).toNanos()))
                .isEqualTo(Duration.ofSeconds(25).toNanos());
        assertThat(PushDeadline.marginNanos(Duration.ofMinutes(80).toNanos()))
                .isEqualTo(Duration.ofMinutes(2).toNanos());
    }

    @ParameterizedTest
    @CsvSource({
        "480, 480, 359, true",
        "480, 480, 361, false",
        "100, 100, 74, true",
        "100, 100, 76, false",
        "200, 480, 79, true",
        "200, 480, 81, false",
        "1000, 480, 359, true",
        "1000, 480, 361, false",
        "1000, 0, 679, true",
        "1000, 0, 681, false",
        "NaN, 480, 0, false"
    })
    void aWriteBeginsUntilAMarginBeforeTheEndThatTheWaitingEngineTells(
            double untilSeconds, double lengthSeconds, int afterSeconds, boolean written) {
        double hereSeconds = (world.nanoTime() + AHEAD.toNanos()) / 1e9;
        assertWritten(
                true,
                new RemoteLease(hereSeconds + untilSeconds, lengthSeconds),
                afterSeconds,
                written);
    }

    /** What an engine of vLLM does not tell is this engine's own time. */
    @ParameterizedTest
    @CsvSource({"679, true", "681, false"})
    void anEngineLikeVllmIsWrittenToUntilAMarginBeforeTheUsualTime(
            int afterSeconds, boolean written) {
        world.sideChannels().serveLikeVllm(d.address());
        assertWritten(false, RemoteLease.UNKNOWN, afterSeconds, written);
    }

    private void assertWritten(
            boolean tells, RemoteLease lease, int afterSeconds, boolean written) {
        world.forget(d);
        d.fill(D_BLOCKS, 7);
        ConnectorRequest request = new ConnectorRequest("p1", TOKENS, Params.prefill());
        p.scheduler().onArrival(request);
        p.scheduler().onAllocated(request, P_BLOCKS, 0, 0);
        world.tick();
        RemotePeer peer = d.rank().transport().load(metadata(p));
        d.rank().transport().notify(peer, registration(tells, lease).encode());
        for (int i = 0; i < 5; i++) {
            world.tick();
        }
        assertThat(p.statistics().handshakes()).isEqualTo(1);

        world.elapse(Duration.ofSeconds(afterSeconds));
        p.fill(P_BLOCKS, 1);
        HandOver handOver = p.scheduler().onFinished(request, FinishKind.LENGTH, P_BLOCKS, TOKENS);
        assertThat(handOver.holdBlocks()).isTrue();
        world.settle();

        assertThat(p.rank().transport().writesPosted()).isEqualTo(written ? 1 : 0);
        assertThat(d.holds(D_BLOCKS, 1)).isEqualTo(written);
        assertThat(d.holds(D_BLOCKS, 7)).isEqualTo(!written);
    }

    private PushRegistration registration(boolean tells, RemoteLease lease) {
        return new PushRegistration(
                new RemoteSource(
                        "D",
                        tells ? d.config().instanceId() : null,
                        tells ? "d1" : "p1",
                        d.address().host(),
                        d.address().port(),
                        1,
                        1,
                        tells ? 1 : 0,
                        lease),
                Arrays.stream(D_BLOCKS).boxed().toList(),
                new RemoteSource(
                        "P",
                        null,
                        tells ? "p1" : "",
                        p.address().host(),
                        p.address().port(),
                        1,
                        1,
                        0));
    }

    private static TransportMetadata metadata(ModelEngine engine) {
        return engine.rank().worker().payload().metadata().agentMetadata();
    }
}
