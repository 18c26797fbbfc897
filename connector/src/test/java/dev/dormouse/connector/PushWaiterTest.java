package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import dev.dormouse.transport.RemotePeer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What D, which waits for writes, says and does to its holder P, which says what the test wants.
 */
final class PushWaiterTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};
    private static final Duration AHEAD = Duration.ofDays(20);

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start(world.pushConfig("P"));
    private final ModelEngine d = world.start(world.pushConfig("D"), AHEAD);
    private final Set<String> cancelled = new HashSet<>();
    private @Nullable RemotePeer fromP;
    private int requests;

    @BeforeEach
    void theTestSpeaksForP() {
        world.forget(p);
    }

    @Test
    void aRegistrationTellsByTheWaitersClockUntilWhenItWaits() {
        double nowSeconds = (world.nanoTime() + AHEAD.toNanos()) / 1e9;
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        List<Notification> heard = heard();
        assertThat(heard).hasSize(1);
        PushRegistration registration = (PushRegistration) heard.getFirst();
        RemoteLease lease = registration.decoder().lease();
        assertThat(lease.lengthSeconds()).isEqualTo(480);
        assertThat(lease.deadlineSeconds()).isCloseTo(nowSeconds + 480, within(0.1));
        assertThat(registration.blocks()).containsExactly(4, 5);
        assertThat(registration.decoder().port()).isEqualTo(d.address().port());
        assertThat(registration.decoder().epoch()).isEqualTo(1);
    }

    /** What a rank tells, others ask of the scheduler's host; ranks may run elsewhere. */
    @Test
    void aRankWhoseClockIsAnotherTellsTheSchedulersTime() {
        world.forget(d);
        assertThat(handOver().remotePrefill()).isTrue();
        double schedulerSeconds = 5_000;
        RemoteSource holder = registration().decoder();
        d.rank()
                .worker()
                .start(
                        new ConnectorStep(
                                List.of(
                                        new ReadOrder(
                                                "d1",
                                                holder,
                                                List.of(4, 5),
                                                List.of(3, 1),
                                                0,
                                                TOKENS,
                                                true)),
                                Set.of(),
                                Set.of(),
                                Map.of(),
                                List.of(),
                                schedulerSeconds,
                                false,
                                Set.of(),
                                List.of(),
                                d.address().port(),
                                new PushStep(1, Map.of(), Set.of(), List.of()),
                                List.of()));
        for (int i = 0; i < 5; i++) {
            world.tick();
            assertThat(d.rank().worker().poll().failedReceiving()).isEmpty();
        }
        PushRegistration registration = (PushRegistration) heard().getFirst();
        assertThat(registration.decoder().lease().deadlineSeconds())
                .isCloseTo(schedulerSeconds + 480, within(0.1));
    }

    @Test
    void aCancellationIsRepeatedUntilItIsObeyed() {
        ConnectorRequest request = d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        abort(request);
        assertThat(takenBack()).containsExactly("d1");
        int before = world.sideChannels().conversations();
        ticks(5_000);
        assertThat(world.sideChannels().conversations() - before).isBetween(5, 30);
        for (int minute = 0; minute < 30; minute++) { // P lives, and has not said yes
            world.elapse(Duration.ofMinutes(1));
            ticks(5);
        }
        assertThat(d.received()).isEmpty();
        p.scheduler().onReport(obeyed());
        ticks(2_000);
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.statistics().failures()).as("its client left").isZero();
        int after = world.sideChannels().conversations();
        ticks(2_000);
        assertThat(world.sideChannels().conversations()).isEqualTo(after);
    }

    @Test
    void aHolderThatSaysItDoesNotWriteIsNotAsked() {
        ConnectorRequest request = d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        say(new PushEnd("d1", true).encode());
        abort(request);
        assertThat(d.received()).containsExactly("d1");
        assertThat(takenBack()).isEmpty();
    }

    @Test
    void aRequestIsRegisteredOnlyIfItsHolderHasItForThisEngine() {
        KvTransferParams gone = handOver();
        KvTransferParams claimed = handOver();
        p.scheduler().onReport(sent("p0"));
        claim("p1", "somebody else");
        d.decode("d1", TOKENS, gone, D_BLOCKS);
        d.decode("d2", TOKENS, claimed, new int[] {6, 7});
        assertThat(heard()).isEmpty();
        assertThat(d.failed()).containsExactlyInAnyOrder("d1", "d2");
        assertThat(d.abandoned()).isEmpty();
        assertThat(d.reason("d2")).contains("does not hold the blocks for this engine");
        assertThat(d.statistics().failedTransfers()).isEqualTo(2);
    }

    @Test
    void aRequestThatIsHeldNoMoreFailsUnlessItsWriteIsHeardOf() {
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        d.decode("d2", TOKENS, handOver(), new int[] {6, 7});
        assertThat(heard()).hasSize(2);
        ticks(3_000);
        assertThat(d.received()).isEmpty();
        assertThat(d.abandoned()).isEmpty();
        p.scheduler().onReport(sent("p0"));
        p.scheduler().onReport(sent("p1"));
        world.elapse(Duration.ofSeconds(1));
        ticks(3); // the holder has said no for the first time
        assertThat(d.abandoned()).isEmpty();
        say("d1:1".getBytes(UTF_8));
        ticks(200);
        assertThat(d.abandoned()).containsExactly("d2");
        assertThat(d.reason("d2")).isEqualTo("the holder does not hold it any more");
        assertThat(takenBack()).containsExactly("d2");
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
    }

    @Test
    void aPromptThatIsComputedStillMayBeWaitedFor() {
        assertThat(d.decode("warm", TOKENS, handOver(), D_BLOCKS).id()).isEqualTo("warm");
        assertThat(heard()).hasSize(1);
        KvTransferParams like =
                Params.changed(handOver(), json -> json.put("remote_request_id", "p9"));
        ConnectorRequest computing = new ConnectorRequest("p9", TOKENS, Params.prefill());
        p.scheduler().onArrival(computing);
        p.scheduler().onAllocated(computing, P_BLOCKS, 0, 0);
        d.decode("d9", TOKENS, like, new int[] {6, 7});
        assertThat(heard()).hasSize(1);
        ticks(3_000);
        assertThat(d.abandoned()).isEmpty();
        HandOver _ = p.scheduler().onFinished(computing, FinishKind.ABORTED, P_BLOCKS, 0);
        ticks(1_200);
        assertThat(d.abandoned()).containsExactly("d9");
    }

    @Test
    void whatIsNotNeededIsLeftToWhoHasClaimedIt() {
        KvTransferParams params = handOver();
        claim("p0", "somebody else");
        d.decode("d1", TOKENS, params, D_BLOCKS, TOKENS);
        assertThat(heard()).isEmpty();
        d.decode("d2", TOKENS, handOver(), D_BLOCKS, TOKENS);
        assertThat(heard()).containsExactly(new Notification.Completion("p1", 1, true));
    }

    @Test
    void whatIsComputedStillAndNotNeededIsToldToItsHolder() {
        KvTransferParams like =
                Params.changed(handOver(), json -> json.put("remote_request_id", "p9"));
        ConnectorRequest computing = new ConnectorRequest("p9", TOKENS, Params.prefill());
        p.scheduler().onAllocated(computing, P_BLOCKS, 0, 0);
        d.decode("d9", TOKENS, like, D_BLOCKS, TOKENS);
        assertThat(heard()).containsExactly(new Notification.Completion("p9", 1, true));
    }

    /** Whether or not the message arrived. */
    @Test
    void aRegistrationThatCouldNotBeSentIsTakenBackBeforeItsBlocksAreFree() {
        d.rank().transport().faults().failNotifies(1);
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).isEmpty();
        assertThat(d.abandoned()).containsExactly("d1");
        assertThat(d.received()).isEmpty();
        assertThat(takenBack()).containsExactly("d1");
        assertThat(d.reason("d1")).contains("took the registration");
    }

    /** It would end at such a message; so only time tells that it does not write. */
    @Test
    void aHolderLikeVllmIsNotToldOfACancellation() {
        KvTransferParams params =
                Params.changed(
                        handOver(),
                        json ->
                                json.without(
                                        List.of(
                                                "remote_registration_epoch",
                                                "remote_instance_id")));
        world.sideChannels().serveLikeVllm(p.address());
        ConnectorRequest request = d.decode("d1", TOKENS, params, D_BLOCKS);
        assertThat(heard()).hasSize(1);
        abort(request);
        int before = world.sideChannels().conversations();
        world.elapse(Duration.ofSeconds(480 + 119));
        assertThat(heard()).isEmpty();
        assertThat(d.received()).isEmpty();
        world.elapse(Duration.ofSeconds(2));
        assertThat(heard()).isEmpty();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(takenBack()).isEmpty();
        assertThat(world.sideChannels().conversations()).as("not asked").isEqualTo(before);
    }

    /** Another rank's registration may have come to the holder first. */
    @Test
    void aWriteThatIsToldBeforeTheRankRegistersCounts() {
        say("d1:1".getBytes(UTF_8));
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
    }

    @Test
    void anEngineMayWaitForARequestThatItWillHandOn() {
        KvTransferParams params =
                Params.changed(handOver(), json -> json.put("do_remote_decode", true));
        d.decode("d1", TOKENS, params, D_BLOCKS);
        assertThat(heard()).hasSize(1);
        say("d1:1".getBytes(UTF_8));
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
    }

    /** Such a request may be read here as well, but no reader that says so has not claimed it. */
    @Test
    void aWriteOfWhatWillBeHandedOnCountsAlsoBeforeTheRankRegisters() {
        KvTransferParams params =
                Params.changed(handOver(), json -> json.put("do_remote_decode", true));
        world.handshakes().setStuck(true);
        d.decode("d1", TOKENS, params, D_BLOCKS);
        ticks(2);
        say("d1:1".getBytes(UTF_8));
        world.handshakes().setStuck(false);
        assertThat(heard()).hasSize(1);
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
    }

    @Test
    void aFailureIsCountedAndReportedOnceWithItsReason() {
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        say(new PushEnd("d1", true).encode());
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.reason("d1")).isEqualTo("the holder does not write it");
        assertThat(d.statistics().failedTransfers()).isEqualTo(1);
        assertThat(d.rank().worker().poll().isEmpty()).isTrue();
    }

    @Test
    void aWriteIsReportedOnce() {
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        say("d1:1".getBytes(UTF_8));
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.rank().worker().poll().isEmpty()).isTrue();
    }

    @Test
    void parametersThatWereUsedAreRefusedHere() {
        KvTransferParams registered = handOver();
        KvTransferParams notNeeded = handOver();
        d.decode("d1", TOKENS, registered, D_BLOCKS);
        d.decode("d2", TOKENS, notNeeded, D_BLOCKS, TOKENS);
        assertThat(heard()).hasSize(2);
        d.decode("d3", TOKENS, registered, new int[] {6, 7});
        d.decode("d4", TOKENS, notNeeded, new int[] {8, 9});
        assertThat(heard()).isEmpty();
        assertThat(d.failed()).containsExactlyInAnyOrder("d3", "d4");
        assertThat(d.reason("d4")).contains("used before");
    }

    @Test
    void whatWasNotRegisteredYetIsFreeAsSoonAsItIsCancelled() {
        world.handshakes().setStuck(true);
        ConnectorRequest request = d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        ticks(2);
        abort(request);
        ticks(2);
        assertThat(d.received()).containsExactly("d1");
        world.handshakes().setStuck(false);
        assertThat(heard()).isEmpty();
    }

    @Test
    void aNoticeThatIsWaitedForIsReportedWhateverBecomesOfIt() {
        assertThat(d.decode("warm", TOKENS, handOver(), D_BLOCKS).id()).isEqualTo("warm");
        assertThat(heard()).hasSize(1);
        assertThat(handOver().remotePrefill()).isTrue();
        PushRegistration known = registration();
        start(notice("n1", known));
        ticks(3);
        assertThat(d.received()).containsExactly("n1");
        start(notice("n2", known)); // used before
        ticks(3);
        assertThat(d.received()).containsExactly("n1", "n2");
    }

    @Test
    void aSleepThatIsRefusedTellsWhoMayStillWriteAndForHowLong() {
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        world.elapse(Duration.ofMinutes(1));
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(d::sleep)
                .withMessageContaining("request d1 may be written by engine='P'")
                .withMessageContaining("for PT8M59.");
    }

    /** Parameters of a prompt that P holds. */
    private KvTransferParams handOver() {
        return p.prefill("p" + requests++, TOKENS, P_BLOCKS, 1);
    }

    /** One of P's, by which it is found. */
    private PushRegistration registration() {
        return PushRegistrations.of(p, "p" + (requests - 1), d, "", P_BLOCKS, true, world);
    }

    private static ReadOrder notice(String id, PushRegistration known) {
        return new ReadOrder(id, known.decoder(), List.of(), List.of(), 0, 0, true);
    }

    private void start(ReadOrder order) {
        d.rank()
                .worker()
                .start(Steps.of(List.of(order), Set.of(), Set.of(), Map.of(), List.of(), 0));
    }

    /** P's ranks have sent a request, or freed it. */
    private static WorkerReport sent(String id) {
        return new WorkerReport(Set.of(id), Set.of(), Set.of(), TransferStatistics.NONE);
    }

    /** P's ranks have let go of what was taken back. */
    private WorkerReport obeyed() {
        return new WorkerReport(
                Set.of(),
                Map.of(),
                Set.of(),
                Set.of(),
                Set.of(),
                Set.of(),
                Map.of(),
                cancelled,
                TransferStatistics.NONE,
                List.of());
    }

    private void claim(String requestId, String reader) {
        try (SideChannel.Conversation conversation =
                world.sideChannels().dial(p.address(), Duration.ofSeconds(5))) {
            HoldQuestion claim = new HoldQuestion(requestId, reader);
            byte[] answer = conversation.ask(claim.encode()).body();
            assertThat(HoldAnswer.decode(answer, claim, 0).held()).isTrue();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void abort(ConnectorRequest request) {
        HandOver _ = d.scheduler().onFinished(request, FinishKind.ABORTED, D_BLOCKS, 0);
    }

    private void say(byte[] message) {
        if (fromP == null) {
            fromP =
                    p.rank()
                            .transport()
                            .load(d.rank().worker().payload().metadata().agentMetadata());
        }
        p.rank().transport().notify(fromP, message);
        ticks(3);
    }

    /** The requests that P was asked to leave, since the last time. */
    private List<String> takenBack() {
        ticks(5);
        List<PushCancel> cancels = p.scheduler().step().push().takenBack();
        cancels.forEach(cancel -> cancelled.add(cancel.id()));
        return cancels.stream().map(cancel -> cancel.decoder().requestId()).toList();
    }

    /** What P was told since the last time. */
    private List<Notification> heard() {
        ticks(5);
        List<Notification> heard = new ArrayList<>();
        p.rank()
                .transport()
                .messages()
                .forEach(message -> heard.add(Notification.decode(message.bytes())));
        return heard;
    }

    private void ticks(int count) {
        for (int i = 0; i < count; i++) {
            world.tick();
        }
    }
}
