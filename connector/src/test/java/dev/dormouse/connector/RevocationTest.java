package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A holder that takes back what nobody has read, on model time. */
final class RevocationTest {
    private static final int[] OTHER_BLOCKS = {0, 2};

    /** In this time any answer comes; a lease takes six times as long. */
    private static final Duration SOON = Duration.ofSeconds(5);

    private final ModelPair pair = new ModelPair();
    private final ModelWorld world = pair.world();
    private final ModelEngine p = pair.p();
    private final ModelEngine d = pair.d();

    @Test
    void whatIsHeldIsFreedAsSoonAsEveryReaderHasSaidThatItIsDone() {
        pair.assertTransfers(1);
        KvTransferParams unread = prefillOther(2);
        p.scheduler().revoke();
        awaitNothingHeld();
        assertThat(p.statistics().revokedRequests()).isEqualTo(1);
        assertThat(p.statistics().expiredRequests()).isZero();
        p.sleep();
        p.wake();
        pair.assertFails(unread);
        pair.assertTransfers(3);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.statistics().rehandshakes()).isEqualTo(1);
    }

    @Test
    void aHolderThatNobodyEverAskedFreesAtOnce() {
        prefillOther(1);
        p.scheduler().revoke();
        p.step();
        assertThat(p.scheduler().heldRequests()).isZero();
        assertThat(world.sideChannels().revocationQuestions()).isZero();
    }

    @Test
    void whoHoldsNothingAsksNobody() {
        pair.assertTransfers(1);
        p.scheduler().revoke();
        world.settle();
        assertThat(world.sideChannels().revocationQuestions()).isZero();
    }

    @Test
    void whoReadBeforeASleepWithNothingHeldIsNotWaitedFor() {
        pair.assertTransfers(1);
        p.sleep();
        p.wake();
        world.sideChannels().setDeaf(d.address(), true);
        prefillOther(2);
        p.scheduler().revoke();
        p.step();
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void aRevocationOfOnePeerDoesNotDisturbAHandshakeWithAnother() throws IOException {
        d.decode("d1", ModelPair.TOKENS, pair.prefill(1), ModelPair.D_BLOCKS);
        world.handshakes().setStuck(true);
        world.tick();
        Revocation other = new Revocation("Q", "qi", 9, 7);
        SideChannel.Answer _ = ask(d.address(), other.encode());
        world.tick();
        world.tick();
        assertThat(DemandReply.decode(ask(d.address(), other.encode()).body()).done()).isTrue();
        world.handshakes().setStuck(false);
        world.settle();
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
    }

    @Test
    void aReadInFlightEndsWellBeforeItsReaderSaysThatItIsDone() {
        pair.assertTransfers(1);
        KvTransferParams slow = pair.prefill(2);
        prefillOther(3);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(2));
        d.decode("slow", ModelPair.TOKENS, slow, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        p.scheduler().revoke();
        pass(Duration.ofSeconds(1));
        assertThat(p.scheduler().heldRequests()).as("still read from").isEqualTo(2);
        awaitNothingHeld();
        assertThat(d.received()).contains("slow");
        assertThat(d.failed()).doesNotContain("slow");
        assertThat(d.holds(ModelPair.D_BLOCKS, 2)).isTrue();
        assertThat(p.statistics().revokedRequests()).as("the other one").isEqualTo(1);
    }

    @Test
    void aReadThatNeverEndsKeepsThePagesUntilTheLeaseEnds() {
        pair.assertTransfers(1);
        KvTransferParams stuck = pair.prefill(2);
        d.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("stuck", ModelPair.TOKENS, stuck, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        assertLastsUntilTheLeaseEnds();
    }

    @Test
    void aReaderThatDoesNotSubscribeIsWaitedForUntilItsLeaseEnds() {
        world.sideChannels().serveLikeVllm(p.address());
        pair.assertReads(
                Params.changed(pair.prefill(1), json -> json.remove("remote_instance_id")), 1);
        prefillOther(2);
        assertLastsUntilTheLeaseEnds();
    }

    @Test
    void aReaderThatDoesNotAnswerIsWaitedForUntilItsLeaseEnds() {
        pair.assertTransfers(1);
        prefillOther(2);
        world.sideChannels().setDeaf(d.address(), true);
        assertLastsUntilTheLeaseEnds();
    }

    @Test
    void aReaderThatCanBeReachedAgainIsAskedAgain() {
        pair.assertTransfers(1);
        prefillOther(2);
        world.sideChannels().setDeaf(d.address(), true);
        p.scheduler().revoke();
        pass(SOON);
        world.sideChannels().setDeaf(d.address(), false);
        awaitNothingHeld();
    }

    @Test
    void aReaderWhoseAddressAnotherProcessHasIsGone() {
        pair.assertTransfers(1);
        prefillOther(2);
        int port = d.scheduler().sideChannelPort();
        d.kill();
        world.start(world.config("D").instanceId("D-again").sideChannelPort(port));
        p.scheduler().revoke();
        awaitNothingHeld();
    }

    @Test
    void anotherEngineAtAReadersAddressSaysNothingAboutTheReader() {
        pair.assertTransfers(1);
        prefillOther(2);
        int port = d.scheduler().sideChannelPort();
        d.kill();
        world.start(world.config("X").sideChannelPort(port));
        assertLastsUntilTheLeaseEnds();
    }

    @Test
    void aReaderThatSleepsHasNothingToReadThrough() {
        pair.assertTransfers(1);
        prefillOther(2);
        d.sleep();
        p.scheduler().revoke();
        awaitNothingHeld();
    }

    @Test
    void allRanksOfAReaderMustBeDone() {
        ModelEngine wideP = world.start(world.config("wideP").tpSize(2));
        ModelEngine wideD = world.start(world.config("wideD").tpSize(2));
        KvTransferParams params = wideP.prefill("p1", 8, ModelPair.P_BLOCKS, 5);
        wideP.prefill("p2", 8, OTHER_BLOCKS, 6);
        wideD.ranks().get(1).transport().faults().setReadDelay(Duration.ofSeconds(2));
        wideD.decode("d1", 8, params, ModelPair.D_BLOCKS);
        pass(Duration.ofSeconds(1));
        wideP.scheduler().revoke();
        pass(Duration.ofMillis(500));
        assertThat(wideP.scheduler().heldRequests()).isEqualTo(2);
        pass(Duration.ofSeconds(2));
        assertThat(wideP.scheduler().heldRequests()).isZero();
        assertThat(wideD.failed()).isEmpty();
        assertThat(wideD.holds(ModelPair.D_BLOCKS, 5)).isTrue();
    }

    @Test
    void aHandshakeThatBeganBeforeTheRevocationIsNotUsed() {
        KvTransferParams params = pair.prefill(1);
        d.decode("d1", ModelPair.TOKENS, params, ModelPair.D_BLOCKS);
        d.step();
        assertThat(world.handshakes().runNext()).as("fetched, not loaded").isTrue();
        p.scheduler().revoke();
        p.step();
        assertThat(world.handshakes().runNext()).as("told").isTrue();
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(d.statistics().handshakes()).isZero();
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void aRequestThatComesAfterTheRevocationIsRefusedByTheHolder() {
        pair.assertTransfers(1);
        KvTransferParams unread = prefillOther(2);
        p.scheduler().revoke();
        awaitNothingHeld();
        pair.assertFails(unread);
        assertThat(d.rank().transport().counts().peers()).isZero();
    }

    @Test
    void afterAnotherPublishReadersReadAgainAndOldHandOversAreGone() {
        pair.assertTransfers(1);
        KvTransferParams old = prefillOther(2);
        world.sideChannels().setDeaf(d.address(), true);
        p.scheduler().revoke();
        pass(SOON);
        p.publish();
        world.sideChannels().setDeaf(d.address(), false);
        pair.assertTransfers(3);
        pair.assertFails(old);
        pass(SOON);
        assertThat(p.scheduler().heldRequests()).as("waits for its lease").isEqualTo(1);
    }

    @Test
    void whoReadsWhatWasHeldBeforeAnotherPublishIsStillWaitedFor() {
        pair.assertTransfers(1);
        KvTransferParams slow = pair.prefill(2);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(2));
        d.decode("slow", ModelPair.TOKENS, slow, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        world.sideChannels().setDeaf(d.address(), true);
        p.scheduler().revoke();
        p.publish();
        p.scheduler().revoke();
        pass(Duration.ofSeconds(1));
        assertThat(p.scheduler().heldRequests()).as("still read from").isEqualTo(1);
        awaitNothingHeld();
        assertThat(d.received()).contains("slow");
        assertThat(d.failed()).doesNotContain("slow");
        assertThat(d.holds(ModelPair.D_BLOCKS, 2)).isTrue();
    }

    @Test
    void aFalseRevocationCostsOneHandshake() throws IOException {
        pair.assertTransfers(1);
        revokeAtD(p.config().instanceId(), p.scheduler().epoch());
        pair.assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(2);
        assertThat(d.statistics().failedTransfers()).isZero();
    }

    @Test
    void aRevocationOfAnotherProcessOrAnOlderRegistrationChangesNothing() throws IOException {
        pair.assertTransfers(1);
        revokeAtD("somebody else", p.scheduler().epoch());
        revokeAtD(p.config().instanceId(), p.scheduler().epoch() - 1);
        pair.assertTransfers(2);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
    }

    @Test
    void aStrangerWhoNamesAnotherReadersAddressDoesNotStandInForIt() throws IOException {
        pair.assertTransfers(1);
        Subscription.Reader stranger = new Subscription.Reader("D", "stranger", d.address());
        byte[] question = new Subscription(stranger, p.scheduler().epoch()).encode();
        assertThat(Subscription.isAccepted(ask(p.address(), question).body())).isTrue();
        KvTransferParams slow = pair.prefill(2);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(2));
        d.decode("slow", ModelPair.TOKENS, slow, ModelPair.D_BLOCKS);
        world.tickUntilReading(d);
        p.scheduler().revoke();
        pass(Duration.ofSeconds(1));
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);
    }

    @Test
    void moreReadersThanCanBeKnownAreWaitedFor() throws IOException {
        long epoch = p.scheduler().epoch();
        for (int i = 0; i < SideChannelDesk.MAX_READERS; i++) {
            byte[] question = subscription("R" + i, epoch);
            assertThat(Subscription.isAccepted(ask(p.address(), question).body())).isTrue();
        }
        pair.assertTransfers(1);
        SideChannelDesk desk = new SideChannelDesk("P", "i", () -> 0, new HoldBook("i", () -> 0));
        desk.serve(1, world.sideChannels().served(p.address()));
        SideChannelDesk.Session anonymous = desk.connected();
        assertThat(anonymous.answer(HandshakeRequest.encode(new RankId(0, 0)))).isNotNull();
        assertThat(anonymous.answer(HandshakeRequest.encode(new RankId(0, 0)))).isNotNull();
        assertThat(desk.anonymousReaders()).as("counted once").isEqualTo(1);
        assertThat(anonymous.answer(subscription("R", 2))).isNotNull();
        assertThat(desk.anonymousReaders()).as("of another epoch").isEqualTo(1);
        assertThat(anonymous.answer(subscription("R", 1))).isNotNull();
        assertThat(desk.anonymousReaders()).isZero();
        assertThat(desk.readers()).hasSize(1);
    }

    @Test
    void revocationsAreRememberedUpToALimitAndNeverForgottenBeforeTheyAreDone() {
        DemandInbox<Revocation> inbox = new DemandInbox<>();
        for (int i = 0; i < DemandInbox.MAX_REMEMBERED; i++) {
            assertThat(inbox.isDone(new Revocation("P", "i", 1, i))).isFalse();
        }
        Revocation tooMany = new Revocation("P", "i", 1, DemandInbox.MAX_REMEMBERED);
        assertThat(inbox.isDone(tooMany)).isFalse();
        List<Revocation> taken = inbox.take();
        assertThat(taken).hasSize(DemandInbox.MAX_REMEMBERED).doesNotContain(tooMany);
        assertThat(inbox.take()).as("given out once").isEmpty();
        inbox.done(Set.of(taken.getFirst().id(), tooMany.id()));
        assertThat(inbox.isDone(taken.getFirst())).isTrue();
        assertThat(inbox.isDone(taken.get(1))).isFalse();
        assertThat(inbox.isDone(tooMany)).as("takes the place of the one that is done").isFalse();
        assertThat(inbox.take()).containsExactly(tooMany);
        assertThat(inbox.isDone(taken.getFirst())).as("forgotten").isFalse();
    }

    private byte[] subscription(String instance, long epoch) {
        return new Subscription(new Subscription.Reader("R", instance, d.address()), epoch)
                .encode();
    }

    private void assertLastsUntilTheLeaseEnds() {
        p.scheduler().revoke();
        pass(SOON);
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);
        world.elapse(p.config().leaseDuration());
        p.step();
        p.step();
        assertThat(p.scheduler().heldRequests()).isZero();
        assertThat(p.statistics().revokedRequests()).isZero();
        assertThat(p.statistics().expiredRequests()).isEqualTo(1);
    }

    private void revokeAtD(String instanceId, long epoch) throws IOException {
        Revocation claim = new Revocation("P", instanceId, epoch, 7);
        boolean done = false;
        for (int i = 0; i < 10 && !done; i++) {
            DemandReply reply = DemandReply.decode(ask(d.address(), claim.encode()).body());
            assertThat(reply.instanceId()).isEqualTo(d.config().instanceId());
            done = reply.done();
            world.tick();
        }
        assertThat(done).isTrue();
    }

    private SideChannel.Answer ask(SideChannelAddress address, byte[] question) throws IOException {
        try (SideChannel.Conversation conversation =
                world.sideChannels().dial(address, Duration.ZERO)) {
            return conversation.ask(question);
        }
    }

    private KvTransferParams prefillOther(long content) {
        return p.prefill("other" + content, ModelPair.TOKENS, OTHER_BLOCKS, content);
    }

    private void awaitNothingHeld() {
        for (long i = SOON.toMillis(); i > 0 && p.scheduler().heldRequests() > 0; i--) {
            world.tick();
        }
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    private void pass(Duration time) {
        for (long i = time.toMillis(); i > 0; i--) {
            world.tick();
        }
    }
}
