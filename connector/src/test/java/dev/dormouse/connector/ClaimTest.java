package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelFault;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/**
 * One hand-over goes to one reader, over a transport on which whoever comes second reads what the
 * holder has put into the blocks since.
 */
final class ClaimTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld(Addressing.VIRTUAL);
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");
    private final ModelEngine other = world.start("other");

    @Test
    void whatOneReaderHasReadAnotherCannotReadAnyMore() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.decode("d1", 8, params, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(p.sent()).contains("p1");
        p.fill(P_BLOCKS, 66);
        other.decode("again", 8, params, D_BLOCKS);
        world.settle();
        assertThat(other.failed()).containsExactly("again");
        assertThat(other.rank().transport().readsPosted()).isZero();
    }

    @Test
    void whatOneReaderIsReadingAnotherCannotBeginToRead() {
        warm(other);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        d.decode("slow", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        long posted = other.rank().transport().readsPosted();
        other.decode("second", 8, params, D_BLOCKS);
        world.settle();
        assertThat(other.failed()).containsExactly("second");
        assertThat(other.rank().transport().readsPosted()).isEqualTo(posted);
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
    }

    @Test
    void anEngineWithAnotherPromptDoesNotLetGoWhatAReaderReads() {
        warm(other);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        d.decode("slow", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        other.decode("longer", 9, params, new int[] {0, 1, 2});
        for (int i = 0; i < 50; i++) {
            world.tick();
        }
        assertThat(other.failed()).containsExactly("longer");
        assertThat(p.sent()).doesNotContain("p1");
        world.settle();
        assertThat(p.sent()).contains("p1");
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
    }

    @Test
    void anAnsweredHandshakeAndAnAnsweredClaimWakeTheEngine() {
        AtomicInteger woken = new AtomicInteger();
        d.rank().worker().wakeWith(woken::incrementAndGet);
        d.decode("d1", 8, p.prefill("p1", 8, P_BLOCKS, 1), D_BLOCKS);
        world.settle();
        assertThat(woken).hasValue(1);
        d.decode("d2", 8, p.prefill("p2", 8, P_BLOCKS, 2), D_BLOCKS);
        world.settle();
        assertThat(woken).hasValue(2);
        assertThat(d.holds(D_BLOCKS, 2)).isTrue();
    }

    @Test
    void twoRequestsOfOneEngineAreTwoReaders() {
        warm(d);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        KvTransferParams stripped =
                Params.changed(params, json -> json.remove("remote_instance_id"));
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        d.decode("first", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        d.decode("second", 8, stripped, new int[] {6, 7});
        world.settle();
        assertThat(d.failed()).containsExactly("second");
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
    }

    @Test
    void whatAReaderHasClaimedStaysItsOwnWhenItDies() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("stuck", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        d.kill();
        other.decode("second", 8, params, D_BLOCKS);
        world.settle();
        assertThat(other.failed()).containsExactly("second");
    }

    @Test
    void allRanksOfAReaderAreOneReader() {
        ModelEngine wideP = world.start(world.config("wideP").tpSize(2));
        ModelEngine wideD = world.start(world.config("wideD").tpSize(2));
        wideD.decode("d1", 8, wideP.prefill("p1", 8, P_BLOCKS, 5), D_BLOCKS);
        world.settle();
        assertThat(wideD.failed()).isEmpty();
        assertThat(wideD.holds(D_BLOCKS, 5)).isTrue();
    }

    @Test
    void aLoadedPeerIsAskedForEachRequestAndForNothingElse() {
        warm(d);
        int claims = world.sideChannels().holdQuestions();
        warm(d);
        assertThat(world.sideChannels().holdQuestions()).isEqualTo(claims + 1);
        assertThat(world.sideChannels().fetches()).as("handshakes").isEqualTo(1);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void requestsThatComeTogetherAreClaimedInOneConversation() {
        warm(d);
        int conversations = world.sideChannels().conversations();
        readAll(0, 5, _ -> {});
        world.settle();
        assertThat(world.sideChannels().conversations()).isEqualTo(conversations + 1);
        assertThatAllWereRead(5);
    }

    @Test
    void requestsThatComeDuringAClaimAreClaimedBehindItAndLaterOnesInTheNext() {
        warm(d);
        int conversations = world.sideChannels().conversations();
        readAll(0, 1, _ -> {});
        world.sideChannels()
                .duringNextClaim(
                        () -> {
                            readAll(1, 3, _ -> {});
                            world.sideChannels().duringNextClaim(() -> readAll(3, 5, _ -> {}));
                        });
        world.settle();
        assertThat(world.sideChannels().conversations()).isEqualTo(conversations + 2);
        assertThatAllWereRead(5);
    }

    @Test
    void oneHandshakeServesAllRequestsThatComeBeforeItEnds() {
        warm(d);
        p.sleep();
        p.wake();
        int fetches = world.sideChannels().fetches();
        int conversations = world.sideChannels().conversations();
        readAll(0, 6, _ -> {});
        world.sideChannels().duringNextFetch(() -> readAll(6, 12, _ -> {}));
        world.sideChannels().duringNextClaim(() -> readAll(12, 16, _ -> {}));
        world.settle();
        assertThat(world.sideChannels().fetches()).isEqualTo(fetches + 1);
        assertThat(world.sideChannels().conversations()).isEqualTo(conversations + 1);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.statistics().rehandshakes()).isEqualTo(1);
        assertThatAllWereRead(16);
    }

    @Test
    void requestsThatDoNotSayWhichRegistrationTheyMeanJoinAHandshakeToo() {
        int fetches = world.sideChannels().fetches();
        readAll(0, 3, ClaimTest::dropOwnKeys);
        world.sideChannels().duringNextFetch(() -> readAll(3, 6, ClaimTest::dropOwnKeys));
        world.settle();
        assertThat(world.sideChannels().fetches()).isEqualTo(fetches + 1);
        readAll(6, 8, ClaimTest::dropOwnKeys);
        world.settle();
        assertThat(world.sideChannels().fetches())
                .as("the holder says of a claim what it serves")
                .isEqualTo(fetches + 1);
        assertThatAllWereRead(8);
    }

    @Test
    void aRequestOfANewerRegistrationThanAHandshakeBringsCausesAnother() {
        readAll(0, 1, _ -> {});
        world.sideChannels()
                .duringNextClaim(
                        () -> {
                            p.publish();
                            readAll(1, 2, _ -> {});
                        });
        world.settle();
        assertThat(world.sideChannels().fetches()).isEqualTo(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThatAllWereRead(2);
    }

    private static void dropOwnKeys(ObjectNode params) {
        params.remove("remote_instance_id");
        params.remove("remote_registration_epoch");
        params.remove("remote_registration_generation");
    }

    /** Request i is one block; the ones that share a block have the same content. */
    private void readAll(int first, int end, Consumer<ObjectNode> change) {
        for (int i = first; i < end; i++) {
            KvTransferParams params = p.prefill("many" + i, 4, new int[] {i % 8}, i % 8);
            d.decode("many" + i, 4, Params.changed(params, change), new int[] {i % 8 + 2});
        }
        d.step();
    }

    private void assertThatAllWereRead(int count) {
        assertThat(d.failed()).isEmpty();
        for (int i = 0; i < count; i++) {
            assertThat(d.received()).contains("many" + i);
            assertThat(p.sent()).contains("many" + i);
            assertThat(d.holds(new int[] {i % 8 + 2}, i % 8)).isTrue();
        }
    }

    @Test
    void aHolderThatDiesBeforeItAnswersFailsTheClaimedRequestsAndNoOthers() {
        warm(d);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        world.sideChannels().setDeaf(p.address(), true);
        d.decode("d1", 8, params, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        world.sideChannels().setDeaf(p.address(), false);
        warm(d);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    private void warm(ModelEngine reader) {
        int failures = reader.failed().size();
        String id = "warm" + world.nextAgentName();
        reader.decode(id, 8, p.prefill(id, 8, P_BLOCKS, 7), D_BLOCKS);
        world.settle();
        assertThat(reader.failed()).hasSize(failures);
        assertThat(reader.holds(D_BLOCKS, 7)).isTrue();
    }
}
