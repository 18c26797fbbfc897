package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * No read after its holder may have given the blocks away, over a transport on which such a read
 * succeeds and brings another prompt's bytes.
 */
final class ReadDeadlineTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld(Addressing.VIRTUAL);
    private final ModelEngine p = world.start(world.config("P"), Duration.ofDays(300));
    private final ModelEngine d = world.start(world.config("D"), Duration.ofDays(-20));
    private int requests;

    @Test
    void aReadThatBeginsAfterTheLeaseIsRefusedAndNotPosted() {
        assertTransfers(1);
        long posted = d.rank().transport().readsPosted();
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        world.tick();
        world.elapse(Duration.ofSeconds(31));
        world.tick();
        assertThat(p.sent()).contains("p1");
        p.fill(P_BLOCKS, 66);

        decode("late", params);

        assertThat(d.failed()).containsExactly("late");
        assertThat(d.reason("late")).contains("does not hold the blocks for this engine");
        assertThat(d.rank().transport().readsPosted()).isEqualTo(posted);
        assertThat(d.statistics().failedTransfers()).as("refused by the holder").isEqualTo(1);
        assertThat(d.statistics().expiredRequests()).isZero();
        assertThat(world.sideChannels().holdQuestions()).as("asked first").isEqualTo(2);
        assertTransfers(3);
    }

    @Test
    void aReadThatEndsAfterTheLeaseHasFailedWhateverItBrought() {
        assertTransfers(1);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(32));
        d.decode("slow", 8, params, D_BLOCKS);
        world.tickUntilReading(d);
        world.elapse(Duration.ofSeconds(31));
        p.step();
        p.fill(P_BLOCKS, 66);
        world.elapse(Duration.ofSeconds(1));
        world.settle();
        assertThat(d.holds(D_BLOCKS, 66)).as("the transport saw no error").isTrue();
        assertThat(d.failed()).containsExactly("slow");
        assertThat(d.statistics().lateTransfers()).isEqualTo(1);
        assertThat(d.statistics().failedTransfers()).as("it was late, it did not fail").isZero();
    }

    @Test
    void theLastSecondsOfALeaseAreLeftAlone() {
        assertTransfers(1);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        world.elapse(Duration.ofSeconds(24));
        decode("inTime", params);
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 2)).isTrue();
        KvTransferParams next = p.prefill("p2", 8, P_BLOCKS, 3);
        world.elapse(Duration.ofSeconds(26));
        decode("tooClose", next);
        assertThat(d.failed()).containsExactly("tooClose");
        assertThat(d.reason("tooClose")).contains("the lease is over");
        assertThat(d.statistics().lateTransfers()).as("declined reads count").isEqualTo(1);
        assertThat(d.statistics().failedTransfers()).isZero();
    }

    @Test
    void whatAReaderHasRenewedIsReadAfterItsFirstLease() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        ConnectorRequest request = new ConnectorRequest("queued", 8, params);
        d.scheduler().onArrival(request);
        for (int second = 0; second < 100; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        d.scheduler().onAllocated(request, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 2)).isTrue();
    }

    @Test
    void aHoldEndsAtItsLimitHoweverOftenItIsRenewed() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        ConnectorRequest request = new ConnectorRequest("queued", 8, params);
        d.scheduler().onArrival(request);
        long limit = p.config().holdLimit().toSeconds();
        for (int second = 0; second < limit - 1; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(p.sent()).isEmpty();
        world.elapse(Duration.ofSeconds(2));
        world.tick();
        assertThat(p.sent()).containsExactly("p1");
        p.fill(P_BLOCKS, 66);
        d.scheduler().onAllocated(request, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).containsExactly("queued");
    }

    @Test
    void whileDrainingNoRenewalProlongsAHoldAndItsReaderFindsOut() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        ConnectorRequest request = new ConnectorRequest("queued", 8, params);
        d.scheduler().onArrival(request);
        p.scheduler().drain(true);
        for (int second = 0; second < 31; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(p.sent()).containsExactly("p1");
        p.fill(P_BLOCKS, 66);
        d.scheduler().onAllocated(request, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).containsExactly("queued");
    }

    /** It looks at no deadline, and nobody can tell it: only its renewals say that it waits. */
    @Test
    void whileDrainingAReaderOfVllmsIsStillRenewed() {
        world.sideChannels().serveLikeVllm(p.address());
        decode("warm", likeVllm(p.prefill("p0", 8, P_BLOCKS, 1)));
        KvTransferParams params = likeVllm(p.prefill("p1", 8, P_BLOCKS, 2));
        ConnectorRequest queued = new ConnectorRequest("queued", 8, params);
        d.scheduler().onArrival(queued);
        p.scheduler().drain(true);
        for (int second = 0; second < 40; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(p.sent()).doesNotContain("p1");
        d.scheduler().onAllocated(queued, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 2)).isTrue();
    }

    @Test
    void withoutInstanceOrEpochOrLeaseTheHolderMustSayThatItHoldsTheRequest() {
        for (List<String> lost :
                List.of(
                        List.of("remote_instance_id"),
                        List.of("remote_registration_epoch", "remote_registration_generation"),
                        List.of("remote_lease_deadline", "remote_lease_seconds"))) {
            int questions = world.sideChannels().holdQuestions();
            decode("good" + requests, without(p.prefill("g" + requests++, 8, P_BLOCKS, 5), lost));
            assertThat(d.failed()).isEmpty();
            assertThat(d.holds(D_BLOCKS, 5)).isTrue();
            assertThat(world.sideChannels().holdQuestions()).isEqualTo(questions + 1);
        }
    }

    @Test
    void aStrippedRequestOfAProcessThatIsGoneIsNotReadFromItsSuccessor() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        int port = p.scheduler().sideChannelPort();
        p.kill();
        ModelEngine again =
                world.start(world.config("P").instanceId("again").sideChannelPort(port));
        assertThat(again.scheduler().epoch()).as("the same epoch").isEqualTo(1);
        again.fill(P_BLOCKS, 66);
        decode("stale", without(params, List.of("remote_instance_id")));
        assertThat(d.failed()).containsExactly("stale");
        assertThat(d.rank().transport().readsPosted()).isZero();
    }

    @Test
    void aStrippedRequestFromBeforeASleepIsNotReadFromTheNewPages() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 1);
        p.sleep();
        p.wake();
        p.fill(P_BLOCKS, 66);
        decode(
                "stale",
                without(
                        params,
                        List.of("remote_registration_epoch", "remote_registration_generation")));
        assertThat(d.failed()).containsExactly("stale");
        assertThat(d.rank().transport().readsPosted()).isZero();
    }

    @Test
    void aPeerOfVllmIsReadWithinAWholeLeaseOrAsFarAsRenewalsReachAndIsNeverAskedMore() {
        world.sideChannels().serveLikeVllm(p.address());
        KvTransferParams params = likeVllm(p.prefill("p1", 8, P_BLOCKS, 1));
        decode("d1", params);
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();

        ConnectorRequest renewed =
                new ConnectorRequest("renewed", 8, likeVllm(p.prefill("p2", 8, P_BLOCKS, 2)));
        d.scheduler().onArrival(renewed);
        for (int second = 0; second < 60; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        d.scheduler().onAllocated(renewed, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 2)).isTrue();

        ConnectorRequest forgotten =
                new ConnectorRequest("forgotten", 8, likeVllm(p.prefill("p3", 8, P_BLOCKS, 3)));
        d.scheduler().onArrival(forgotten);
        world.elapse(Duration.ofSeconds(31));
        p.step();
        p.fill(P_BLOCKS, 66);
        d.scheduler().onAllocated(forgotten, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).containsExactly("forgotten");
        assertThat(world.sideChannels().holdQuestions()).isZero();
    }

    @Test
    void anEngineIdAtAnotherAddressIsAnotherEngine() {
        assertTransfers(1);
        ModelEngine liar = world.start(world.config("P").instanceId("liar"));
        liar.fill(P_BLOCKS, 66);
        KvTransferParams elsewhere =
                Params.changed(
                        p.prefill("p1", 8, P_BLOCKS, 2),
                        json -> json.put("remote_port", liar.scheduler().sideChannelPort()));
        decode("elsewhere", elsewhere);
        assertThat(d.failed()).containsExactly("elsewhere");
        assertTransfers(3);
        assertThat(d.statistics().handshakes()).as("nothing was dropped").isEqualTo(2);
    }

    @Test
    void theSameEngineUnderTwoNamesOfItsHostIsReadUnderBoth() {
        assertTransfers(1);
        // A second name: the model's side channels know addresses by their text.
        SideChannelAddress alias = new SideChannelAddress("localhost", 50_000);
        world.sideChannels().alias(alias, p.address());
        KvTransferParams params =
                Params.changed(
                        p.prefill("p1", 8, P_BLOCKS, 2),
                        json -> {
                            json.put("remote_host", alias.host());
                            json.put("remote_port", alias.port());
                        });
        decode("alias", params);
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 2)).isTrue();
        assertTransfers(3);
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 0));
    }

    @Test
    void parametersThatAreUsedTwiceAreReadOnce() {
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        decode("first", params);
        p.fill(P_BLOCKS, 66);
        decode("again", params);
        assertThat(d.failed()).containsExactly("again");
        assertThat(d.rank().transport().readsPosted()).isEqualTo(1);
    }

    @Test
    void whatWasToldNotToBeNeededIsNotReadAndNotAskedForAgain() {
        assertTransfers(1);
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        d.decode("cached", 8, params, D_BLOCKS, 8);
        world.settle();
        assertThat(p.sent()).contains("p1");
        int questions = world.sideChannels().holdQuestions();
        decode("again", params);
        assertThat(d.failed()).containsExactly("again");
        assertThat(d.reason("again")).contains("were used before");
        assertThat(world.sideChannels().holdQuestions()).isEqualTo(questions);
    }

    @Test
    void aReadThatFailedMayNotBeRepeatedSinceItsHolderWasToldNotToWait() {
        d.rank().transport().faults().planRead(new ModelFault.FailHalfWay());
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        decode("first", params);
        assertThat(p.sent()).containsExactly("p1");
        p.fill(P_BLOCKS, 66);
        decode("again", params);
        assertThat(d.failed()).containsExactlyInAnyOrder("first", "again");
        assertThat(d.rank().transport().readsPosted()).isEqualTo(1);
    }

    @Test
    void aDuplicateThatIsNotNeededDoesNotEndTheHoldUnderTheFirst() {
        assertTransfers(1);
        d.rank().transport().faults().setReadDelay(Duration.ofMillis(20));
        KvTransferParams params = p.prefill("p1", 8, P_BLOCKS, 2);
        d.decode("reads", 8, params, D_BLOCKS);
        world.tick();
        ConnectorRequest duplicate = new ConnectorRequest("duplicate", 8, params);
        HandOver _ = d.scheduler().onFinished(duplicate, FinishKind.ABORTED, new int[0], 0);
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        assertThat(p.sent()).as("the first still reads").doesNotContain("p1");
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(p.sent()).contains("p1");
    }

    @Test
    void aShortLeaseOfTheHolderIsRenewedAtItsOwnPace() {
        ModelEngine brief = world.start(world.config("B").leaseDuration(Duration.ofSeconds(3)));
        KvTransferParams params = brief.prefill("b1", 8, P_BLOCKS, 4);
        ConnectorRequest request = new ConnectorRequest("queued", 8, params);
        d.scheduler().onArrival(request);
        for (int tenth = 0; tenth < 150; tenth++) {
            world.elapse(Duration.ofMillis(100));
            world.tick();
        }
        assertThat(brief.sent()).isEmpty();
        d.scheduler().onAllocated(request, D_BLOCKS, 0, 8);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 4)).isTrue();
    }

    @Test
    void aCompletionBeforeTheHandOverFreesItsBlocksWithTheLeaseAndNotNever() {
        ConnectorRequest request = new ConnectorRequest("p1", 4, Params.prefill());
        p.scheduler().onAllocated(request, new int[] {0}, 0, 0);
        world.tick();
        world.fabric()
                .inject(
                        p.rank().transport().agentName(),
                        new PeerMessage("stranger", "p1:1".getBytes(UTF_8)));
        world.settle();
        assertThat(p.sent()).as("it still runs").isEmpty();
        HandOver _ = p.scheduler().onFinished(request, FinishKind.LENGTH, new int[] {0}, 4);
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void aHoldThatARankHasLostIsEndedAfterItsLimit() {
        HandOver _ =
                p.scheduler()
                        .onFinished(
                                new ConnectorRequest("p1", 4, Params.prefill()),
                                FinishKind.LENGTH,
                                new int[] {0},
                                4);
        ConnectorStep _ = p.scheduler().step(); // the rank never sees its lease
        world.elapse(p.config().holdLimit());
        world.settle();
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);
        world.elapse(p.config().leaseDuration());
        world.settle();
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void aProcessesEpochsAreAboveThoseOfItsPredecessor() {
        Instant start = Instant.parse("2026-01-01T00:00:00Z");
        long base = Surroundings.epochBase(start);
        assertThat(Surroundings.epochBase(start.plusSeconds(1))).isGreaterThan(base + 1_000_000);
        assertThat((long) (double) base).as("exact in JSON").isEqualTo(base);
        assertThat(Surroundings.epochBase(Instant.parse("2200-01-01T00:00:00Z")))
                .isLessThan(1L << 53);
        PullScheduler scheduler =
                new PullScheduler(
                        Params.config("E").build(),
                        new ModelSideChannels().surroundings(() -> 0, base),
                        () -> {});
        scheduler.publish(List.of(asE()));
        assertThat(scheduler.epoch()).isEqualTo(base + 1);
    }

    private RankPayload asE() {
        return new RankPayload(
                0,
                0,
                AgentMetadata.ofAttention(
                        "E",
                        TransportMetadata.ofAgent(new byte[] {1}),
                        p.rank().regions(),
                        "FLASH_ATTN"));
    }

    private void assertTransfers(long content) {
        String id = "ok" + requests++;
        decode(id, p.prefill("p" + id, 8, P_BLOCKS, content));
        assertThat(d.failed()).doesNotContain(id);
        assertThat(d.holds(D_BLOCKS, content)).isTrue();
    }

    private void decode(String id, KvTransferParams params) {
        d.decode(id, 8, params, D_BLOCKS);
        world.settle();
        assertThat(d.received()).contains(id);
    }

    private static KvTransferParams likeVllm(KvTransferParams params) {
        return without(
                params,
                List.of(
                        "remote_registration_epoch",
                        "remote_instance_id",
                        "remote_lease_deadline",
                        "remote_lease_seconds",
                        "remote_prompt_tokens"));
    }

    private static KvTransferParams without(KvTransferParams params, List<String> keys) {
        return Params.changed(params, json -> keys.forEach(json::remove));
    }
}
