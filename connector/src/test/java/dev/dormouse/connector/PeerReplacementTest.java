package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** When a peer is dropped because another took its place, or nobody needs it, and when it stays. */
final class PeerReplacementTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};
    private static final int[] OTHER_BLOCKS = {0, 2};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");
    private int requests;

    @Test
    void peersAtOtherAddressesStayWhenOneIsReplaced() {
        ModelEngine x = world.start("X");
        assertTransfers(p, d, 1);
        assertTransfers(x, d, 2);

        ModelEngine q = takeTheAddressOfP();
        assertTransfers(q, d, 3);
        assertThat(peersOf(d)).as("X and Q").isEqualTo(2);
        assertTransfers(x, d, 4);
        assertThat(d.statistics().handshakes()).as("X was not asked again").isEqualTo(3);
    }

    @Test
    void aPeerStaysLoadedIfTheHandshakeOfAnotherAtItsAddressFails() {
        assertTransfers(p, d, 1);

        KvTransferParams lie =
                Params.changed(prefill(p, 2), json -> json.put("remote_engine_id", "Q"));
        assertThat(d.failed()).contains(read(d, lie));
        assertTransfers(p, d, 3);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        assertThat(peersOf(d)).isEqualTo(1);
    }

    @Test
    void aReplacedPeerIsDroppedOnlyWhenItsReadsHaveEnded() {
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(50));
        d.decode("slow", TOKENS, prefill(p, 1), D_BLOCKS);
        world.tickUntilReading(d);
        d.rank().transport().faults().setReadDelay(Duration.ZERO);
        ModelEngine q = takeTheAddressOfP();

        d.decode("new", TOKENS, prefill(q, 2), OTHER_BLOCKS);
        for (int i = 0; i < 20; i++) {
            world.tick();
        }
        assertThat(d.received()).containsExactly("new");
        assertThat(peersOf(d)).as("the old one is still read from").isEqualTo(2);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(d.holds(OTHER_BLOCKS, 2)).isTrue();
        assertThat(peersOf(d)).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aReplacedPeerIsDroppedOnlyWhenWhatWaitsForItHasEnded(boolean notice) {
        assertTransfers(p, d, 1);
        KvTransferParams anothers =
                Params.changed(prefill(p, 2), json -> json.put("remote_instance_id", "another"));
        ModelEngine q = takeTheAddressOfP();

        d.decode("new", TOKENS, prefill(q, 3), OTHER_BLOCKS);
        if (notice) {
            ConnectorRequest unread = new ConnectorRequest("old", TOKENS, anothers);
            HandOver _ = d.scheduler().onFinished(unread, FinishKind.ABORTED, new int[0], 0);
        } else {
            d.decode("old", TOKENS, anothers, D_BLOCKS);
        }
        d.step();
        assertThat(world.handshakes().pending()).isEqualTo(2);
        world.tick();
        assertThat(peersOf(d)).as("Q is loaded, P is being asked").isEqualTo(2);
        world.settle();
        assertThat(peersOf(d)).isEqualTo(1);
        assertThat(d.holds(OTHER_BLOCKS, 3)).isTrue();
        assertThat(d.failed().contains("old")).isEqualTo(!notice);
    }

    @Test
    void aRequestForAReplacedPeerThatIsBackHandshakesAgain() {
        int port = p.scheduler().sideChannelPort();
        assertTransfers(p, d, 1);
        ModelEngine q = takeTheAddressOfP();
        assertTransfers(q, d, 2);
        q.kill();

        ModelEngine again =
                world.start(world.config("P").instanceId("again").sideChannelPort(port));
        assertTransfers(again, d, 3);
        assertThat(d.statistics().handshakes()).isEqualTo(3);
        assertThat(peersOf(d)).isEqualTo(1);
    }

    @Test
    void aReadThatFailsOverALivingConnectionCostsNoHandshake() {
        assertTransfers(p, d, 1);
        d.rank().transport().faults().planRead(new ModelFault.FailHalfWay());

        assertThat(d.failed()).contains(read(d, prefill(p, 2)));
        assertTransfers(p, d, 3);
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void thePeerThatIsLostHarmsNoOther() {
        ModelEngine x = world.start("X");
        assertTransfers(p, d, 1);
        KvTransferParams ofTheDead = prefill(p, 2);
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(50));
        d.decode("slow", TOKENS, prefill(x, 3), OTHER_BLOCKS);
        world.tickUntilReading(d);
        p.kill();

        d.decode("dead", TOKENS, ofTheDead, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("dead");
        assertThat(d.holds(OTHER_BLOCKS, 3)).isTrue();
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void anEvictedPeerIsForgottenWithItsBackOff() {
        Duration ttl = Duration.ofMillis(500);
        ModelEngine brief = world.start(world.config("B").engineTtl(ttl));
        for (int lost = 0; lost < 2; lost++) {
            assertTransfers(p, brief, lost);
            brief.rank().transport().disconnectPeers();
        }
        assertThat(brief.failed()).contains(read(brief, prefill(p, 2)));
        assertThat(brief.statistics().handshakes()).as("left alone for a second").isEqualTo(2);

        world.elapse(ttl);
        world.settle();
        assertTransfers(p, brief, 3);
    }

    @Test
    void aPeerThatIsRenewedIsNotEvicted() {
        Duration ttl = Duration.ofSeconds(20);
        ModelEngine brief = world.start(world.config("B").engineTtl(ttl));
        assertTransfers(p, brief, 1);
        ConnectorRequest queued =
                new ConnectorRequest("queued", TOKENS, p.prefill("q", TOKENS, OTHER_BLOCKS, 2));
        brief.scheduler().onArrival(queued);
        for (int second = 0; second < 100; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(peersOf(brief)).isEqualTo(1);
        assertThat(brief.statistics().handshakes()).isEqualTo(1);

        HandOver _ = brief.scheduler().onFinished(queued, FinishKind.ABORTED, new int[0], 0);
        world.settle();
        world.elapse(ttl);
        world.settle();
        assertThat(peersOf(brief)).isZero();
    }

    @Test
    void withoutALimitNoIdlePeerIsEvicted() {
        ModelEngine patient = world.start(world.config("E").engineTtl(Duration.ZERO));
        assertTransfers(p, patient, 1);

        world.elapse(Duration.ofDays(30));
        world.settle();
        assertThat(peersOf(patient)).isEqualTo(1);
        assertTransfers(p, patient, 2);
        assertThat(patient.statistics().handshakes()).isEqualTo(1);
    }

    /** A handshake answers the requests that waited when it began; the others wait for the next. */
    @Test
    void aFailedHandshakeCountsOnceForAllItsRequestsAndAsNoTransfer() {
        world.sideChannels().setDeaf(p.address(), true);
        for (int i = 0; i < 4; i++) {
            KvTransferParams params = p.prefill("p" + i, 4, new int[] {i}, i);
            d.decode("d" + i, 4, params, new int[] {i});
        }
        world.settle();

        assertThat(d.failed()).hasSize(4);
        assertThat(world.sideChannels().fetches()).isEqualTo(2);
        assertThat(d.statistics().failedHandshakes()).isEqualTo(2);
        assertThat(d.statistics().failedTransfers()).isZero();
    }

    /** P works on, but whoever asks at its address meets another engine. */
    private ModelEngine takeTheAddressOfP() {
        int port = p.scheduler().sideChannelPort();
        p.scheduler().close();
        return world.start(world.config("Q").sideChannelPort(port));
    }

    private KvTransferParams prefill(ModelEngine holder, long content) {
        return holder.prefill("prompt" + requests++, TOKENS, P_BLOCKS, content);
    }

    private String read(ModelEngine reader, KvTransferParams params) {
        String id = "read" + requests++;
        reader.decode(id, TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(reader.received()).contains(id);
        return id;
    }

    private void assertTransfers(ModelEngine holder, ModelEngine reader, long content) {
        assertThat(reader.failed()).doesNotContain(read(reader, prefill(holder, content)));
        assertThat(reader.holds(D_BLOCKS, content)).isTrue();
    }

    private static int peersOf(ModelEngine reader) {
        return reader.rank().transport().counts().peers();
    }
}
