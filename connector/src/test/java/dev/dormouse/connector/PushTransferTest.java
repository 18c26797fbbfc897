package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFault;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Prompts that their holder P writes to D, which waits for them. */
final class PushTransferTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start(world.pushConfig("P"));
    private final ModelEngine d = world.start(world.pushConfig("D"));

    @Test
    void anEngineWithAnotherPromptDoesNotLetGoWhatIsBeingWritten() {
        ModelEngine other = world.start(world.pushConfig("other"));
        other.decode("warm", TOKENS, p.prefill("p0", TOKENS, P_BLOCKS, 0), D_BLOCKS);
        world.settle();
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        p.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        long before = p.rank().transport().writesPosted();
        d.decode("d1", TOKENS, params, D_BLOCKS);
        for (int i = 0; i < 100 && p.rank().transport().writesPosted() == before; i++) {
            world.tick();
        }
        other.decode("longer", TOKENS + 1, params, new int[] {0, 1, 2});
        for (int i = 0; i < 50; i++) {
            world.tick();
        }
        assertThat(other.failed()).containsExactly("longer");
        assertThat(p.sent()).doesNotContain("p1");
        world.settle();
        assertReceived("d1", 1);
        assertThat(p.sent()).contains("p1");
    }

    @Test
    void aHandOverThatNamesTooFewBlocksIsNotWaitedFor() {
        KvTransferParams params =
                Params.changed(
                        p.prefill("p1", TOKENS, P_BLOCKS, 1),
                        json -> json.putArray("remote_block_ids").addArray().add(P_BLOCKS[0]));
        ConnectorRequest request = new ConnectorRequest("d1", TOKENS, params);
        d.scheduler().onArrival(request);
        assertThat(d.scheduler().externalTokens(request, 0)).isZero();
    }

    @Test
    void aPromptIsWrittenAndBothSidesHearOfIt() {
        for (int round = 0; round < 3; round++) {
            KvTransferParams params = p.prefill("p" + round, TOKENS, P_BLOCKS, round);
            d.decode("d" + round, TOKENS, params, D_BLOCKS);
            world.settle();
            assertReceived("d" + round, round);
            assertThat(p.sent()).contains("p" + round);
        }
        assertThat(p.rank().transport().writesPosted()).isEqualTo(3);
        assertThat(d.rank().transport().readsPosted()).isZero();
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        assertThat(p.statistics().handshakes()).isEqualTo(1);
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void parametersAreThoseOfAPushOfVllm() {
        var json = p.prefill("p1", TOKENS, P_BLOCKS, 1).toJson();
        assertThat(json.path("transfer_mode").textValue()).isEqualTo("push");
        assertThat(json.has("remote_blocks_expiry_time")).isFalse();
        assertThat(json.has("remote_registration_generation")).isFalse();
        assertThat(json.path("do_remote_prefill").booleanValue()).isTrue();
        assertThat(json.path("remote_registration_epoch").longValue()).isEqualTo(1);
    }

    @Test
    void onlyTheTailIsWrittenAfterAPrefixThatIsHere() {
        int[] blocks = {3, 1, 7};
        KvTransferParams params = p.prefill("p1", 12, blocks, 1);
        int[] local = {4, 5, 6};
        d.fill(new int[] {4}, 9);
        d.decode("d1", 12, params, local, ModelEngine.BLOCK_TOKENS);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(local, 1, 1)).isTrue();
        assertThat(d.holds(new int[] {4}, 9)).as("the cached block").isTrue();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void aHolderIsToldAtOnceThatAPromptIsNotNeeded() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        d.decode("d1", TOKENS, params, D_BLOCKS, TOKENS);
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().expiredRequests()).isZero();
        assertThat(p.rank().transport().writesPosted()).isZero();
    }

    @Test
    void parametersAreUsedOnce() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        d.decode("d1", TOKENS, params, D_BLOCKS);
        world.settle();
        d.decode("d2", TOKENS, params, new int[] {6, 7});
        world.settle();
        assertThat(d.failed()).containsExactly("d2");
    }

    @Test
    void aRequestThatEndedMeanwhileIsTakenBackAndItsBlocksAreFreeOnceTheHolderSaysSo() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        world.tick();
        ConnectorRequest request = d.decode("d1", TOKENS, params, D_BLOCKS);
        world.handshakes().setStuck(true); // P cannot reach D
        d.step();
        world.handshakes().setStuck(false);
        runUntil(() -> d.statistics().handshakes() == 1);
        world.handshakes().setStuck(true);
        world.tick();
        HandOver _ = d.scheduler().onFinished(request, FinishKind.ABORTED, D_BLOCKS, 0);
        world.tick();
        assertThat(d.received()).as("P may still write").isEmpty();
        assertThat(d.abandoned()).containsExactly("d1");
        world.sideChannels().setDeaf(d.address(), true);
        world.handshakes().setStuck(false);
        runUntil(() -> d.received().contains("d1"));
        assertThat(d.failed()).containsExactly("d1");
        assertThat(p.rank().transport().writesPosted()).isZero();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().expiredRequests()).isZero();
    }

    @Test
    void aWriteThatBeganBeforeTheCancellationIsWaitedFor() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        ConnectorRequest request = d.decode("d1", TOKENS, params, D_BLOCKS);
        p.rank().transport().faults().setReadDelay(Duration.ofSeconds(5));
        runUntil(() -> p.rank().transport().writesPosted() == 1);
        HandOver _ = d.scheduler().onFinished(request, FinishKind.ABORTED, D_BLOCKS, 0);
        for (int i = 0; i < 1_500; i++) {
            world.tick();
        }
        assertThat(d.received()).isEmpty();
        world.elapse(Duration.ofSeconds(5));
        runUntil(() -> d.received().contains("d1"));
        assertThat(d.holds(D_BLOCKS, 1)).as("came before the blocks were free").isTrue();
    }

    @Test
    void aWriteThatFailsFailsTheRequestAndTheLeaseFreesTheHoldersBlocks() {
        p.rank().transport().faults().planRead(new ModelFault.FailHalfWay());
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        d.decode("d1", TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
        assertThat(p.sent()).as("a failed write is no success").isEmpty();
        world.elapse(Duration.ofSeconds(40));
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().failedTransfers()).isEqualTo(1);
    }

    @Test
    void blocksOfAFailedWriteAreKeptAsLongAsItsTransferMayWrite() {
        p.rank().transport().faults().planRead(new ModelFault.FailAndRefuseRelease(20));
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        d.decode("d1", TOKENS, params, D_BLOCKS);
        runUntil(() -> d.abandoned().contains("d1"));
        assertThat(d.received()).isEmpty();
        runUntil(() -> d.received().contains("d1"));
        assertThat(d.failed()).containsExactly("d1");
    }

    @Test
    void aWriteThatHangsFailsItsRequestInTimeAndKeepsItsBlocksAsLongAsItsHolderSaysSo() {
        p.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        d.decode("d1", TOKENS, params, D_BLOCKS);
        runUntil(() -> p.rank().transport().writesPosted() == 1);
        world.elapse(Duration.ofMinutes(3));
        runUntil(() -> d.abandoned().contains("d1"));
        for (int minute = 0; minute < 20; minute++) {
            world.elapse(Duration.ofMinutes(1));
            world.tick();
            world.tick();
            world.tick();
        }
        assertThat(d.received()).isEmpty();
        assertThat(p.sent()).as("the write reads the holder's blocks").isEmpty();
        p.rank().transport().failStuckReads();
        world.elapse(Duration.ofSeconds(1));
        runUntil(() -> d.received().contains("d1") && p.sent().contains("p1"));
    }

    /** As after a sleep that was given up: the pages are the same, and the write goes on. */
    @Test
    void aHolderThatHasPublishedAnewMayStillBeWriting() {
        p.rank().transport().faults().planRead(new ModelFault.NeverComplete());
        d.decode("d1", TOKENS, p.prefill("p1", TOKENS, P_BLOCKS, 1), D_BLOCKS);
        runUntil(() -> p.rank().transport().writesPosted() == 1);
        p.publish();
        KvTransferParams next = p.prefill("p2", TOKENS, new int[] {6, 7}, 2);
        d.decode("d2", TOKENS, next, new int[] {8, 9});
        runUntil(() -> d.received().contains("d2"));
        assertThat(d.abandoned()).contains("d1");
        for (int i = 0; i < 50; i++) {
            world.tick();
        }
        assertThat(d.received()).as("its blocks are still written").doesNotContain("d1");
        p.rank().transport().failStuckReads();
        world.elapse(Duration.ofSeconds(1));
        runUntil(() -> d.received().contains("d1"));
        assertThat(d.failed()).contains("d1");
    }

    @Test
    void aHolderThatCannotReachTheWaitingEngineDropsThePushAndTheRequestFails() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        world.sideChannels().serve(d.address(), Map.of());
        d.decode("d1", TOKENS, params, D_BLOCKS);
        runUntil(() -> p.statistics().failedHandshakes() > 0);
        assertThat(p.rank().transport().writesPosted()).isZero();
        for (int i = 0; i < 130; i++) {
            world.elapse(Duration.ofSeconds(5));
            world.tick();
        }
        assertThat(d.failed()).containsExactly("d1");
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void aHolderThatDiesFailsTheRequestsThatWaitForIt() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        world.handshakes().setStuck(false);
        p.rank().transport().faults().setReadDelay(Duration.ofMinutes(1));
        d.decode("d1", TOKENS, params, D_BLOCKS);
        runUntil(() -> p.rank().transport().writesPosted() == 1);
        int port = p.scheduler().sideChannelPort();
        p.kill();
        world.elapse(Duration.ofSeconds(6));
        runUntil(() -> d.abandoned().contains("d1"));
        world.start(world.pushConfig("P").instanceId("again").sideChannelPort(port));
        world.elapse(Duration.ofSeconds(10));
        for (int i = 0; i < 2_000 && !d.received().contains("d1"); i++) {
            world.tick();
        }
        assertThat(d.failed()).containsExactly("d1");
    }

    @Test
    void aHandOverThatIsGoneIsRefusedAtOnce() {
        KvTransferParams params = p.prefill("p1", TOKENS, P_BLOCKS, 1);
        world.tick();
        world.elapse(Duration.ofSeconds(40));
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        d.decode("d1", TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("d1");
    }

    @Test
    void aRegistrationOfAnotherAgentIsRefused() {
        ModelEngine stranger = world.start(world.pushConfig("S"));
        d.fill(D_BLOCKS, 7);
        p.prefill("p1", TOKENS, P_BLOCKS, 1);
        world.tick();
        register(stranger, d, "p1", true, D_BLOCKS);
        world.settle();
        assertThat(p.rank().transport().writesPosted()).isZero();
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
    }

    @Test
    void aPeerLikeVllmIsMatchedByTheRoutersIdInEitherOrder() {
        world.forget(d);
        world.sideChannels().serveLikeVllm(d.address());
        RemotePeer peer = null;
        for (int round = 0; round < 2; round++) {
            boolean registersFirst = round == 1;
            String id = "cmpl-" + round;
            PushRegistration registration = registration(d, id + "-0123abCD", "", D_BLOCKS, false);
            peer = peer == null ? d.rank().transport().load(metadata(p)) : peer;
            if (registersFirst) {
                d.rank().transport().notify(peer, registration.encode());
                world.settle();
            }
            p.prefill(id + "-9f9f9f9f", TOKENS, P_BLOCKS, 40 + round);
            p.prefill("cmpl-7" + round + "-9f9f9f9f", TOKENS, new int[] {6, 7}, 99);
            world.tick();
            if (!registersFirst) {
                d.rank().transport().notify(peer, registration.encode());
            }
            world.settle();
            assertThat(d.holds(D_BLOCKS, 40 + round)).isTrue();
            assertThat(p.sent()).contains(id + "-9f9f9f9f");
            assertThat(d.rank().transport().messages())
                    .extracting(PeerMessage::bytes)
                    .containsExactly((id + "-0123abCD:1").getBytes(UTF_8));
        }
        assertThat(p.sent()).hasSize(2);
    }

    @Test
    void unknownCompletionsAndBrokenRegistrationsAreHarmless() {
        RemotePeer peer = d.rank().transport().load(metadata(p));
        for (String message : List.of("nobody:1", "PUSH_REG:", "PUSH_REG:x", "PUSH_REG:\u0001")) {
            d.rank().transport().notify(peer, message.getBytes(UTF_8));
        }
        peer.close();
        world.settle();
        assertThat(p.statistics().malformedNotifications()).isEqualTo(3);
        d.decode("d1", TOKENS, p.prefill("p1", TOKENS, P_BLOCKS, 1), D_BLOCKS);
        world.settle();
        assertReceived("d1", 1);
    }

    /** Has {@code sender} register a request of {@code waiting}. */
    private void register(
            ModelEngine sender,
            ModelEngine waiting,
            String holderRequest,
            boolean tells,
            int[] blocks) {
        RemotePeer peer = sender.rank().transport().load(metadata(p));
        sender.rank()
                .transport()
                .notify(peer, registration(waiting, "d1", holderRequest, blocks, tells).encode());
    }

    private PushRegistration registration(
            ModelEngine waiting, String id, String holderRequest, int[] blocks, boolean tells) {
        return PushRegistrations.of(waiting, id, p, holderRequest, blocks, tells, world);
    }

    private static TransportMetadata metadata(ModelEngine engine) {
        return engine.rank().worker().payload().metadata().agentMetadata();
    }

    private void assertReceived(String id, long content) {
        assertThat(d.received()).contains(id);
        assertThat(d.failed()).doesNotContain(id);
        assertThat(d.holds(D_BLOCKS, content)).isTrue();
    }

    private void runUntil(java.util.function.BooleanSupplier condition) {
        for (int i = 0; i < 3_000 && !condition.getAsBoolean(); i++) {
            world.tick();
        }
        assertThat(condition.getAsBoolean()).isTrue();
    }
}
