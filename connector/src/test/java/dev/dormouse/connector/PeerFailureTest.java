package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What a peer that cannot be asked costs, and for how long one stays loaded. */
final class PeerFailureTest {
    private final ModelPair pair = new ModelPair();
    private final ModelWorld world = pair.world();
    private final ModelEngine d = pair.d();

    @Test
    void aPeerThatCannotBeAskedFailsTheReadsFromRanksOfThatSizeOnly() {
        world.handshakes().setStuck(true);
        KvTransferParams params = pair.prefill(1);
        d.decode("right", ModelPair.TOKENS, params, ModelPair.D_BLOCKS);
        KvTransferParams wrong =
                Params.changed(
                        pair.p().prefill("other", ModelPair.TOKENS, new int[] {0, 2}, 2),
                        json -> json.put("tp_size", 1_000));
        d.decode("wrong", ModelPair.TOKENS, wrong, new int[] {8, 9});
        world.tick();
        world.handshakes().setStuck(false);
        world.settle();
        assertThat(d.failed()).containsExactly("wrong");
        assertThat(d.holds(ModelPair.D_BLOCKS, 1)).isTrue();
    }

    @Test
    void aHandshakeThatBreaksForNoKnownReasonFailsItsReadsAndNothingElse() {
        world.handshakes().setBroken(true);
        KvTransferParams params = pair.prefill(1);
        String read = pair.read(params);
        assertThat(d.failed()).containsExactly(read);
        assertThat(d.reason(read)).contains("internal error", "injected");
        world.handshakes().setBroken(false);
        pair.assertReads(params, 1);
    }

    @Test
    void theReasonOfAFailedHandshakeIsThePeersOwn() {
        pair.p().scheduler().withdraw();
        KvTransferParams params = pair.prefill(1);
        String read = pair.read(params);
        assertThat(d.reason(read)).startsWith("handshake refused by the peer: ");
    }

    @Test
    void withoutATimeToLiveAPeerStaysLoadedForEver() {
        ModelEngine keeper = world.start(world.config("K").engineTtl(Duration.ZERO));
        keeper.decode("k1", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        world.settle();
        world.elapse(Duration.ofDays(300));
        world.settle();
        assertThat(keeper.rank().transport().counts().peers()).isEqualTo(1);
    }

    @Test
    void aPeerStaysLoadedForItsTimeToLiveHoweverLateTheClock() {
        world.elapse(Duration.ofDays(300));
        world.settle();
        pair.assertTransfers(1);
        world.elapse(d.config().engineTtl().minusSeconds(10));
        world.settle();
        assertThat(d.rank().transport().counts().peers()).isEqualTo(1);
    }
}
