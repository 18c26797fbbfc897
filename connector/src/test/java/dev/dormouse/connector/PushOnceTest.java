package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.transport.RemotePeer;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A hand-over is written once, and nothing of it is left. */
final class PushOnceTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start(world.pushConfig("P"));
    private final ModelEngine d = world.start(world.pushConfig("D"));

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRegistrationThatComesAgainIsWrittenOnce(boolean beforeThePrompt) {
        ConnectorRequest request = new ConnectorRequest("p1", TOKENS, Params.prefill());
        p.scheduler().onArrival(request);
        p.scheduler().onAllocated(request, P_BLOCKS, 0, 0);
        world.tick();
        RemotePeer peer =
                d.rank().transport().load(p.rank().worker().payload().metadata().agentMetadata());
        byte[] registration =
                PushRegistrations.of(d, "d1", p, "p1", D_BLOCKS, true, world).encode();
        if (beforeThePrompt) {
            registerTwice(peer, registration);
        }
        p.fill(P_BLOCKS, 1);
        HandOver _ = p.scheduler().onFinished(request, FinishKind.LENGTH, P_BLOCKS, TOKENS);
        world.tick();
        registerTwice(peer, registration);
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(p.sent()).containsExactly("p1");

        d.fill(D_BLOCKS, 7);
        registerTwice(peer, registration);
        assertThat(p.rank().transport().writesPosted()).isEqualTo(1);
        assertThat(d.holds(D_BLOCKS, 7)).as("another prompt's").isTrue();
    }

    @Test
    void nothingOfAPromptThatWasWrittenRunsOutLater() {
        d.decode("d1", TOKENS, p.prefill("p1", TOKENS, P_BLOCKS, 1), D_BLOCKS);
        world.settle();
        assertThat(d.received()).containsExactly("d1");
        for (int minute = 0; minute < 30; minute++) {
            world.elapse(Duration.ofMinutes(1));
            world.tick();
        }
        assertThat(d.failed()).isEmpty();
        assertThat(d.abandoned()).isEmpty();
        assertThat(p.statistics().expiredRequests()).isZero();
        assertThat(d.statistics().expiredRequests()).isZero();
    }

    private void registerTwice(RemotePeer peer, byte[] registration) {
        for (int i = 0; i < 2; i++) {
            d.rank().transport().notify(peer, registration);
        }
        world.settle();
    }
}
