package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Which registration of which process a request means, and what it costs to find out. */
final class PeerIdentityTest {
    private final ModelPair pair = new ModelPair();
    private final ModelWorld world = pair.world();
    private final ModelEngine d = pair.d();

    @Test
    void anOlderEpochNeverCausesAHandshakeAndIsNeverRead() {
        KvTransferParams old = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.p().sleep();
        pair.p().wake();
        pair.assertTransfers(2);
        int fetches = world.sideChannels().fetches();

        String id = pair.read(old);

        assertThat(d.failed()).contains(id);
        assertThat(world.sideChannels().fetches()).isEqualTo(fetches);
        pair.assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void anOlderEpochIsNotReadEvenIfNothingIsLoaded() {
        KvTransferParams old = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.p().sleep();
        pair.p().wake();
        pair.p().fill(ModelPair.P_BLOCKS, 2);
        pair.assertFails(old);
        pair.assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void aNewerEpochWaitsUntilReadsThroughTheOldRegistrationHaveEnded() {
        pair.assertTransfers(1);
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(50));
        KvTransferParams first = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.decode("slow", 8, first, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        pair.p().publish();
        d.rank().transport().faults().setReadDelay(Duration.ZERO);
        KvTransferParams second = pair.p().prefill("p2", 8, new int[] {6, 7}, 2);
        d.decode("new", 8, second, new int[] {0, 1});
        for (int i = 0; i < 30; i++) {
            world.tick();
            assertThat(d.received()).doesNotContain("new");
        }
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(ModelPair.D_BLOCKS, 1)).isTrue();
        assertThat(d.holds(new int[] {0, 1}, 2)).isTrue();
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void aHandshakeThatStraddlesARepublishIsRedoneExactlyOnce() {
        KvTransferParams first = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        d.decode("d1", 8, first, ModelPair.D_BLOCKS);
        d.step();
        assertThat(world.handshakes().runNext()).as("answered in epoch 1").isTrue();
        pair.p().sleep();
        pair.p().wake();
        KvTransferParams second = pair.p().prefill("p2", 8, ModelPair.P_BLOCKS, 2);
        d.decode("d2", 8, second, new int[] {0, 1});
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.holds(new int[] {0, 1}, 2)).isTrue();
        assertThat(world.sideChannels().fetches()).isEqualTo(2);
    }

    @Test
    void theSmallestEpochOfAHandshakesRanksCounts() {
        ModelEngine wide = world.start(world.config("W").tpSize(2));
        byte[] before = served(wide, 1);
        wide.sleep();
        wide.wake();
        FetchedEngine straddled =
                FetchedEngine.decode(
                        "W",
                        wide.address(),
                        new HandshakeAnswers(List.of(served(wide, 0), before), null, Map.of()),
                        new RankMapping(2, List.of(whole(0), whole(1)), 1),
                        0,
                        wide.config(),
                        d.rank().regions());
        assertThat(straddled.identity().epoch()).isEqualTo(1);
        assertThat(straddled.identity().newestEpoch()).isEqualTo(2);
        assertThat(wide.scheduler().epoch()).isEqualTo(2);
    }

    private static RankMapping.Slice whole(int rank) {
        return new RankMapping.Slice(rank, 0, 0, 1, 1, 1, false);
    }

    @Test
    void anEpochThatThePeerNeverPublishedIsRefusedAndCostsTheWorkingPeerNothing() {
        pair.assertTransfers(1);
        KvTransferParams params = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        for (int i = 0; i < 5; i++) {
            KvTransferParams hostile =
                    Params.changed(params, json -> json.put("remote_registration_epoch", 1L << 40));
            pair.assertFails(hostile);
            pair.assertTransfers(i);
        }
        assertThat(d.statistics().handshakes()).as("nothing was dropped").isEqualTo(1);
    }

    @Test
    void withoutAnEpochThePeerIsAskedBeforeEachReadAndHandshakedOnlyIfItChanged() {
        pair.assertTransfers(1);
        for (int i = 0; i < 3; i++) {
            int fetches = world.sideChannels().fetches();
            int claims = world.sideChannels().holdQuestions();
            pair.assertReads(
                    stripped(pair.p().prefill("s" + i, 8, ModelPair.P_BLOCKS, 10 + i)), 10 + i);
            assertThat(world.sideChannels().fetches()).isEqualTo(fetches);
            assertThat(world.sideChannels().holdQuestions()).isEqualTo(claims + 1);
        }
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        pair.p().sleep();
        pair.p().wake();
        pair.assertReads(stripped(pair.p().prefill("after", 8, ModelPair.P_BLOCKS, 20)), 20);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
    }

    @Test
    void eitherNameOfTheEpochIsHonoured() {
        pair.assertTransfers(1);
        pair.p().sleep();
        pair.p().wake();
        KvTransferParams vllms =
                Params.changed(
                        pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 2),
                        json -> json.remove("remote_registration_epoch"));
        pair.assertReads(vllms, 2);
        pair.p().sleep();
        pair.p().wake();
        KvTransferParams ours =
                Params.changed(
                        pair.p().prefill("p2", 8, ModelPair.P_BLOCKS, 3),
                        json -> json.remove("remote_registration_generation"));
        pair.assertReads(ours, 3);
        assertThat(d.statistics().handshakes()).isEqualTo(3);
    }

    @Test
    void aRestartedEngineOfTheSameIdIsNotTakenForTheOldOne() {
        pair.assertTransfers(1);
        KvTransferParams fromTheDead = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.restartP("P");
        assertThat(pair.p().scheduler().epoch()).as("the counter starts again").isEqualTo(1);
        pair.p().fill(ModelPair.P_BLOCKS, 66);

        pair.assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        int fetches = world.sideChannels().fetches();
        pair.assertFails(fromTheDead);
        assertThat(world.sideChannels().fetches()).as("known to be gone").isEqualTo(fetches);
        pair.assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.rank().transport().counts().peers()).isEqualTo(1);
    }

    @Test
    void aRestartIsNoticedWithoutTheInstanceIdToo() {
        pair.assertTransfers(1);
        pair.restartP("P");
        KvTransferParams params =
                Params.changed(
                        pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 2),
                        json -> json.remove("remote_instance_id"));
        pair.assertReads(params, 2);
    }

    @Test
    void aRequestForAProcessThatIsGoneFailsAfterOneQuestion() {
        KvTransferParams fromTheDead = pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1);
        pair.restartP("P");
        pair.p().fill(ModelPair.P_BLOCKS, 66);
        pair.assertFails(fromTheDead);
        pair.assertFails(fromTheDead);
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
    }

    @Test
    void aPeerOfVllmThatTellsNoEpochIsReloadedOnlyWhenItsBytesChange() {
        world.sideChannels().serveLikeVllm(pair.p().address());
        pair.assertReads(likeVllm(pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1), 1), 1);
        pair.assertReads(likeVllm(pair.p().prefill("p2", 8, ModelPair.P_BLOCKS, 2), 1), 2);
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
        pair.assertReads(likeVllm(pair.p().prefill("p3", 8, ModelPair.P_BLOCKS, 3), 2), 3);
        assertThat(d.statistics().handshakes()).as("asked, but unchanged").isEqualTo(1);
        pair.p().sleep();
        pair.p().wake();
        world.sideChannels().serveLikeVllm(pair.p().address());
        pair.assertReads(likeVllm(pair.p().prefill("p4", 8, ModelPair.P_BLOCKS, 4), 3), 4);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        pair.assertFails(likeVllm(pair.p().prefill("p5", 8, ModelPair.P_BLOCKS, 5), 2));
    }

    @Test
    void aHeartbeatsHandshakeWithAPeerOfVllmServesTheReadOfItsRequest() {
        world.sideChannels().serveLikeVllm(pair.p().address());
        KvTransferParams params = likeVllm(pair.p().prefill("p1", 8, ModelPair.P_BLOCKS, 1), 7);
        ConnectorRequest request = new ConnectorRequest("d1", 8, params);
        d.scheduler().onArrival(request);
        for (int second = 0; second < 60; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
        assertThat(d.scheduler().externalTokens(request, 0)).isEqualTo(8);
        d.scheduler().onAllocated(request, ModelPair.D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.holds(ModelPair.D_BLOCKS, 1)).isTrue();
        assertThat(world.sideChannels().fetches()).as("nothing newer is meant").isEqualTo(1);
        pair.assertFails(likeVllm(pair.p().prefill("p2", 8, ModelPair.P_BLOCKS, 2), 6));
    }

    private byte[] served(ModelEngine engine, int tpRank) {
        return Objects.requireNonNull(
                world.sideChannels().served(engine.address()).get(new RankId(0, tpRank)));
    }

    private static KvTransferParams likeVllm(KvTransferParams params, long generation) {
        return Params.changed(
                params,
                json -> {
                    json.remove("remote_registration_epoch");
                    json.remove("remote_instance_id");
                    json.remove("remote_lease_deadline");
                    json.remove("remote_lease_seconds");
                    json.put("remote_registration_generation", generation);
                });
    }

    private static KvTransferParams stripped(KvTransferParams params) {
        return Params.changed(
                params,
                json -> {
                    json.remove("remote_registration_epoch");
                    json.remove("remote_registration_generation");
                    json.remove("remote_instance_id");
                });
    }
}
