package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import dev.dormouse.transport.RemotePeer;
import java.time.Duration;
import java.util.ArrayList;
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
                                new PushStep(1, Map.of(), Set.of()),
                                List.of(),
                                Map.of()));
        for (int i = 0; i < 5; i++) {
            world.tick();
            assertThat(d.rank().worker().poll().failedReceiving()).isEmpty();
        }
        PushRegistration registration = (PushRegistration) heard().getFirst();
        assertThat(registration.decoder().lease().deadlineSeconds())
                .isCloseTo(schedulerSeconds + 480, within(0.1));
    }

    @Test
    void aCancellationIsRepeatedEverySecondUntilItIsAnswered() {
        ConnectorRequest request = d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).hasSize(1);
        abort(request);
        assertThat(heard()).hasSize(1).allMatch(PushCancel.class::isInstance);
        ticks(900);
        assertThat(heard()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        assertThat(heard()).hasSize(1).allMatch(PushCancel.class::isInstance);
        say(new PushEnd("d1", true).encode());
        assertThat(d.received()).containsExactly("d1");
        world.elapse(Duration.ofSeconds(2));
        assertThat(heard()).isEmpty();
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
        world.elapse(Duration.ofSeconds(480 + 119));
        assertThat(heard()).isEmpty();
        assertThat(d.received()).isEmpty();
        world.elapse(Duration.ofSeconds(2));
        assertThat(heard()).isEmpty();
        assertThat(d.failed()).containsExactly("d1");
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
    void aRegistrationThatTheHolderDoesNotTakeFailsAtOnce() {
        d.rank().transport().faults().failNotifies(1);
        d.decode("d1", TOKENS, handOver(), D_BLOCKS);
        assertThat(heard()).isEmpty();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.reason("d1")).contains("did not take the registration");
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
        PushRegistration known = registration();
        ReadOrder first = notice("n1", known);
        start(first);
        assertThat(d.rank().worker().poll().finishedReceiving()).containsExactly("n1");
        start(notice("n2", known)); // used before
        assertThat(d.rank().worker().poll().finishedReceiving()).containsExactly("n2");
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
        return PushRegistrations.of(p, "p", d, "", P_BLOCKS, true, world);
    }

    private static ReadOrder notice(String id, PushRegistration known) {
        return new ReadOrder(id, known.decoder(), List.of(), List.of(), 0, 0, true);
    }

    private void start(ReadOrder order) {
        d.rank()
                .worker()
                .start(
                        new ConnectorStep(
                                List.of(order), Set.of(), Set.of(), Map.of(), List.of(), 0));
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
