package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.ModelFault;
import dev.dormouse.transport.RemotePeer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a holder P says and does to D, which says what the test wants. */
final class PushHolderTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start(world.pushConfig("P"));
    private final ModelEngine d = world.start(world.pushConfig("D"));
    private final RemotePeer fromD =
            d.rank().transport().load(p.rank().worker().payload().metadata().agentMetadata());

    @BeforeEach
    void theTestSpeaksForD() {
        world.forget(d);
    }

    @Test
    void aRegistrationForMoreBlocksThanThePromptHasIsRefusedAndServesNobody() {
        hold("p1");
        register("d1", "p1", 4, 5, 6);
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
        assertThat(p.rank().transport().writesPosted()).isZero();
        say(new Notification.Completion("p1", 1).encode());
        assertThat(p.sent()).as("somebody had no need of it").containsExactly("p1");
    }

    @Test
    void aRequestThatAnotherRegistrationHasIsRefusedAtOnce() {
        p.rank().transport().faults().setReadDelay(Duration.ofSeconds(5));
        hold("p1");
        register("d1", "p1", D_BLOCKS);
        register("d2", "p1", 6, 7);
        assertThat(heard()).containsExactly(new PushEnd("d2", true));
        assertThat(p.rank().transport().writesPosted()).isEqualTo(1);
    }

    @Test
    void whoeverRegistersInVainIsToldAsSoonAsItCanBeReached() {
        register("d1", "gone", D_BLOCKS);
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
        assertThat(heard()).as("once").isEmpty();
    }

    @Test
    void whoeverCannotBeReachedIsAskedAgainAfterASecond() {
        world.elapse(Duration.ofHours(1)); // whatever the clock shows
        world.sideChannels().setDeaf(d.address(), true);
        register("d1", "gone", D_BLOCKS);
        world.sideChannels().setDeaf(d.address(), false);
        int before = world.sideChannels().conversations();
        ticks(900);
        assertThat(world.sideChannels().conversations()).isEqualTo(before);
        assertThat(heard()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
    }

    @Test
    void whoeverMayWaitNoLongerIsNotToldThatItWaitsInVain() {
        world.sideChannels().setDeaf(d.address(), true);
        register("d1", "gone", D_BLOCKS);
        world.elapse(p.config().pushTimeout());
        ticks(5);
        world.sideChannels().setDeaf(d.address(), false);
        world.elapse(Duration.ofSeconds(2));
        assertThat(heard()).isEmpty();
    }

    @Test
    void aCancellationOfOneRequestIsAnsweredWhileAnotherIsWritten() {
        p.rank().transport().faults().setReadDelay(Duration.ofSeconds(5));
        hold("p1");
        register("d1", "p1", D_BLOCKS);
        compute("p2");
        register("d2", "p2", 6, 7);
        assertThat(heard()).isEmpty();
        assertThat(takesBack("d2", "p2")).as("P has not seen it").isFalse();
        ticks(2);
        assertThat(takesBack("d2", "p2")).isTrue();
        assertThat(heard()).as("all ranks are told").containsExactly(new PushEnd("d2", true));
        for (int i = 0; i < 5; i++) {
            assertThat(takesBack("d1", "p1")).as("it is under way").isFalse();
            ticks(2);
        }
        world.elapse(Duration.ofSeconds(5));
        assertThat(heard()).containsExactly(new Notification.Completion("d1", 1));
        assertThat(takesBack("d1", "p1")).isTrue();
        assertThat(heard()).isEmpty();
    }

    @Test
    void aRegistrationThatComesAfterItWasTakenBackBeginsNothing() {
        hold("p1");
        assertThat(takesBack("d1", "p1")).isFalse();
        ticks(2);
        register("d1", "p1", D_BLOCKS);
        assertThat(takesBack("d1", "p1")).isTrue();
        assertThat(p.rank().transport().writesPosted()).isZero();
    }

    @Test
    void aSleepingHolderAndOneThatCannotReachWhoWaitsLetGoAsWell() {
        world.sideChannels().setDeaf(d.address(), true);
        compute("p1");
        register("d1", "p1", D_BLOCKS);
        assertThat(takesBack("d1", "p1")).isFalse();
        ticks(2);
        assertThat(takesBack("d1", "p1")).isTrue();
        p.sleep();
        register("d2", "p2", D_BLOCKS);
        assertThat(takesBack("d2", "p2")).isFalse();
        ticks(2);
        assertThat(takesBack("d2", "p2")).isTrue();
    }

    @Test
    void whatIsTakenBackBeforeItIsWrittenIsHeldNoLonger() {
        hold("p1");
        world.handshakes().setStuck(true);
        register("d1", "p1", D_BLOCKS);
        assertThat(takesBack("d1", "p1")).isFalse();
        ticks(2);
        assertThat(takesBack("d1", "p1")).isTrue();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().expiredRequests()).isZero();
        assertThat(p.statistics().failures()).isZero();
    }

    @Test
    void whatIsNotNeededBeforeItIsComputedIsNotHeldThen() {
        ConnectorRequest request = compute("p1");
        say(new Notification.Completion("p1", 1, true).encode());
        HandOver _ = p.scheduler().onFinished(request, FinishKind.LENGTH, P_BLOCKS, TOKENS);
        register("d1", "p1", D_BLOCKS);
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().expiredRequests()).isZero();
    }

    @Test
    void aRegistrationFromBeforeTheHoldersLastSleepIsRefusedWhateverItNames() {
        PushRegistration old = registration("d1", "p1", D_BLOCKS);
        p.sleep();
        p.wake();
        hold("p1"); // the same name for another prompt
        say(asOf(old, p.config().instanceId(), 1).encode());
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
        say(asOf(registration("d2", "p1", 6, 7), "another process", 2).encode());
        assertThat(heard()).containsExactly(new PushEnd("d2", true));
        assertThat(p.rank().transport().writesPosted()).isZero();
        say(asOf(registration("d3", "p1", 8, 9), p.config().instanceId(), 2).encode());
        assertThat(heard()).containsExactly(new Notification.Completion("d3", 1));
    }

    @Test
    void aRegistrationThatContradictsTheFirstIsDropped() {
        compute("p1");
        register("d1", "p1", D_BLOCKS);
        register("d1", "p1", 6, 7);
        assertThat(p.statistics().malformedNotifications()).isEqualTo(1);
        register("d1", "p1", D_BLOCKS);
        assertThat(p.statistics().malformedNotifications()).isEqualTo(1);
    }

    @Test
    void registrationsOfOneRequestThatAreTooManyAreRefusedAndCounted() {
        compute("p1");
        for (int i = 0; i < PushMatches.MAX_ALIKE; i++) {
            register("d" + i, "p1", D_BLOCKS);
        }
        assertThat(p.statistics().malformedNotifications()).isZero();
        assertThat(heard()).isEmpty();
        register("one more", "p1", D_BLOCKS);
        assertThat(p.statistics().malformedNotifications()).isEqualTo(1);
        assertThat(heard()).containsExactly(new PushEnd("one more", true));
    }

    @Test
    void aRegistrationByAnotherAgentIsAnsweredToTheEngineThatItNames() {
        ModelEngine stranger = world.start(world.pushConfig("S"));
        hold("p1");
        RemotePeer peer =
                stranger.rank()
                        .transport()
                        .load(p.rank().worker().payload().metadata().agentMetadata());
        stranger.rank().transport().notify(peer, registration("d1", "p1", D_BLOCKS).encode());
        ticks(10);
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
        assertThat(p.rank().transport().writesPosted()).isZero();
    }

    @Test
    void aLeaseEndsInTimeWhileAnotherRequestIsWritten() {
        p.rank().transport().faults().setReadDelay(Duration.ofMinutes(1));
        hold("p1");
        p.prefill("p2", TOKENS, new int[] {6, 7}, 2);
        register("d1", "p1", D_BLOCKS);
        world.elapse(Duration.ofSeconds(40));
        ticks(5);
        assertThat(p.sent()).containsExactly("p2");
        world.elapse(Duration.ofSeconds(20));
        ticks(5);
        assertThat(p.sent()).containsExactlyInAnyOrder("p1", "p2");
    }

    @Test
    void aWriteThatCannotStartIsNoSuccess() {
        p.rank().transport().faults().planRead(new ModelFault.FailPost());
        hold("p1");
        register("d1", "p1", D_BLOCKS);
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
        assertThat(p.sent()).isEmpty();
        assertThat(p.statistics().failedTransfers()).isEqualTo(1);
        world.elapse(Duration.ofSeconds(40));
        ticks(5);
        assertThat(p.sent()).as("its lease ran out").containsExactly("p1");
    }

    @Test
    void aWriteThatTakesTooLongIsSaidToFailOnceAndToHaveEndedWhenItHas() {
        p.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        hold("p1");
        register("d1", "p1", D_BLOCKS);
        world.elapse(Duration.ofSeconds(119));
        assertThat(heard()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        assertThat(heard()).containsExactly(new PushEnd("d1", false));
        assertThat(heard()).isEmpty();
        p.rank().transport().failStuckReads();
        assertThat(heard()).containsExactly(new PushEnd("d1", true));
    }

    @Test
    void anIdThatIsUsedAgainIsAnotherRequest() {
        hold("p1");
        register("d1", "p1", D_BLOCKS);
        assertThat(p.sent()).containsExactly("p1");
        hold("p1");
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);
        say(new Notification.Completion("p1", 1, true).encode());
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void whoeverIsLostWhileItIsWrittenToIsDropped() {
        world.sideChannels().serveLikeVllm(d.address());
        p.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        hold("cmpl-1");
        say(likeVllm("cmpl-1"));
        assertThat(p.rank().transport().writesPosted()).isEqualTo(1);
        d.kill();
        world.elapse(Duration.ofSeconds(1));
        ticks(5);
        assertThat(p.rank().transport().counts().peers()).isZero();
    }

    @Test
    void aRegistrationThatComesWhileTheHolderSleepsBeginsNothing() {
        world.sideChannels().serveLikeVllm(d.address());
        p.sleep();
        say(likeVllm("cmpl-1"));
        p.wake();
        hold("cmpl-1");
        ticks(20);
        assertThat(p.rank().transport().writesPosted()).isZero();
    }

    @Test
    void whoeverWaitsForAPromptIsToldWhenTheHolderGoesToSleep() {
        compute("p9");
        register("d9", "p9", D_BLOCKS);
        assertThat(heard()).isEmpty();
        p.sleep();
        assertThat(heard()).containsExactly(new PushEnd("d9", true));
    }

    @Test
    void whoeverWaitsForAPromptThatIsAbortedIsToldSo() {
        ConnectorRequest request = compute("p9");
        register("d9", "p9", D_BLOCKS);
        assertThat(heard()).isEmpty();
        HandOver _ = p.scheduler().onFinished(request, FinishKind.ABORTED, P_BLOCKS, 0);
        assertThat(heard()).containsExactly(new PushEnd("d9", true));
    }

    @Test
    void nobodyIsAskedDuringASleepForWhatWasNotSaidBefore() {
        world.sideChannels().setDeaf(d.address(), true);
        register("d1", "gone", D_BLOCKS);
        p.sleep();
        world.sideChannels().setDeaf(d.address(), false);
        int before = world.sideChannels().conversations();
        world.elapse(Duration.ofSeconds(2));
        assertThat(heard()).isEmpty();
        assertThat(world.sideChannels().conversations()).isEqualTo(before);
        assertThat(p.rank().transport().counts().peers()).isZero();
    }

    @Test
    void aRegistrationForAnotherEngineIsDropped() {
        ModelEngine other = world.start(world.pushConfig("other"));
        hold("p1");
        say(PushRegistrations.of(d, "d1", other, "p1", D_BLOCKS, true, world).encode());
        assertThat(p.statistics().malformedNotifications()).isEqualTo(1);
        assertThat(heard()).isEmpty();
        register("d1", "p1", D_BLOCKS);
        assertThat(heard()).containsExactly(new Notification.Completion("d1", 1));
    }

    @Test
    void aWriteThatWaitsForItsTargetIsGivenUpWhenASleepIsTried() {
        hold("p1");
        world.handshakes().setStuck(true);
        register("d1", "p1", D_BLOCKS);
        assertThatExceptionOfType(ReleaseTimeoutException.class).isThrownBy(p::sleep);
        world.handshakes().setStuck(false);
        ticks(20);
        assertThat(p.rank().transport().writesPosted()).isZero();
    }

    @Test
    void aSleepThatIsRefusedTellsWhatIsWrittenAndForHowLong() {
        p.rank().transport().faults().setReadDelay(Duration.ofMinutes(10));
        hold("p1");
        register("d1", "p1", D_BLOCKS);
        world.elapse(Duration.ofMinutes(1));
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(p::sleep)
                .withMessageContaining("write of request p1 to engine='D'")
                .withMessageContaining("for PT1M0.2");
    }

    /** P computes a prompt, which has not ended. */
    private ConnectorRequest compute(String id) {
        ConnectorRequest request = new ConnectorRequest(id, TOKENS, Params.prefill());
        p.scheduler().onArrival(request);
        p.scheduler().onAllocated(request, P_BLOCKS, 0, 0);
        world.tick();
        return request;
    }

    private void hold(String id) {
        p.prefill(id, TOKENS, P_BLOCKS, 1);
        world.tick();
    }

    private void register(String id, String holderRequest, int... blocks) {
        say(registration(id, holderRequest, blocks).encode());
    }

    private PushRegistration registration(String id, String holderRequest, int... blocks) {
        return PushRegistrations.of(d, id, p, holderRequest, blocks, true, world);
    }

    /** What the registration would say if its sender had loaded that of P. */
    private static PushRegistration asOf(
            PushRegistration registration, String instanceId, long epoch) {
        RemoteSource holder = registration.holder();
        return new PushRegistration(
                registration.decoder(),
                registration.blocks(),
                new RemoteSource(
                        holder.engineId(),
                        instanceId,
                        holder.requestId(),
                        holder.host(),
                        holder.port(),
                        1,
                        1,
                        epoch));
    }

    /** D takes a registration back, now or once more; true if P has let go of it. */
    private boolean takesBack(String id, String holderRequest) {
        RemoteSource decoder = registration(id, holderRequest, D_BLOCKS).decoder();
        byte[] cancel = new PushCancel(withoutLease(decoder)).encode();
        try (SideChannel.Conversation conversation =
                world.sideChannels().dial(p.address(), Duration.ofSeconds(5))) {
            return DemandReply.decode(conversation.ask(cancel).body()).done();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Time goes on, but it is the same registration. */
    private static RemoteSource withoutLease(RemoteSource decoder) {
        return new RemoteSource(
                decoder.engineId(),
                decoder.instanceId(),
                decoder.requestId(),
                decoder.host(),
                decoder.port(),
                1,
                1,
                decoder.epoch());
    }

    private byte[] likeVllm(String id) {
        return PushRegistrations.of(d, id, p, "", D_BLOCKS, false, world).encode();
    }

    private void say(byte[] message) {
        d.rank().transport().notify(fromD, message);
        ticks(5);
    }

    /** What D was told since the last time. */
    private List<Notification> heard() {
        ticks(5);
        return d.rank().transport().messages().stream()
                .map(message -> Notification.decode(message.bytes()))
                .toList();
    }

    private void ticks(int count) {
        for (int i = 0; i < count; i++) {
            world.tick();
        }
    }
}
