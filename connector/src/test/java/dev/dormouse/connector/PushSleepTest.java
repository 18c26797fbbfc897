package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Pushes between engines that sleep: no write meets pages that their owner has let go of. */
final class PushSleepTest {
    private static final int TOKENS = 8;
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private ModelWorld world = new ModelWorld();
    private ModelEngine p = world.start(world.pushConfig("P"));
    private ModelEngine d = world.start(world.pushConfig("D"));
    private int requests;

    private void start(Addressing addressing) {
        world = new ModelWorld(addressing);
        p = world.start(world.pushConfig("P"));
        d = world.start(world.pushConfig("D"));
    }

    @ParameterizedTest
    @EnumSource
    void afterAWakeOfTheHolderOneHandshakeEachWayIsEnough(Addressing addressing) {
        start(addressing);
        for (int cycle = 0; cycle < 10; cycle++) {
            assertTransfers(cycle);
            assertTransfers(100 + cycle);
            assertHandshakes(1 + cycle);
            p.sleep();
            p.wake();
        }
        assertThat(d.statistics().failedTransfers() + p.statistics().failedTransfers()).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void afterAWakeOfTheWaitingEngineItsNewPagesAreWritten(Addressing addressing) {
        start(addressing);
        for (int cycle = 0; cycle < 10; cycle++) {
            assertTransfers(cycle);
            assertTransfers(100 + cycle);
            assertHandshakes(1 + cycle);
            d.sleep();
            d.wake();
        }
        assertThat(d.statistics().failedTransfers() + p.statistics().failedTransfers()).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void bothMaySleep(Addressing addressing) {
        start(addressing);
        for (int cycle = 0; cycle < 5; cycle++) {
            assertTransfers(cycle);
            p.sleep();
            d.sleep();
            d.wake();
            p.wake();
        }
        assertTransfers(99);
        assertHandshakes(6);
    }

    @ParameterizedTest
    @EnumSource
    void asleepNothingPinsThePagesAndNothingIsLoaded(Addressing addressing) {
        start(addressing);
        assertTransfers(1);
        for (ModelEngine engine : new ModelEngine[] {p, d}) {
            long awake = engine.rank().memory().residentBytes();
            engine.sleep();
            assertThat(engine.rank().memory().residentBytes()).isZero();
            assertThat(engine.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
            engine.wake();
            assertThat(engine.rank().memory().residentBytes()).isEqualTo(awake);
            assertTransfers(2);
        }
    }

    @ParameterizedTest
    @EnumSource
    void aSleepTakesRegistrationsBackThatAreNotWrittenYet(Addressing addressing) {
        start(addressing);
        ConnectorRequest held = registerBeforeItsPromptIsComputed("p9", "d9");
        long before = world.nanoTime();
        d.sleep();
        assertThat(world.nanoTime() - before).isLessThan(Duration.ofMillis(100).toNanos());
        assertThat(d.failed()).contains("d9");
        d.wake();
        d.fill(D_BLOCKS, 7);
        finish(held, 1);
        world.settle();
        assertThat(d.holds(D_BLOCKS, 7)).as("nothing was written").isTrue();
        assertTransfers(3);
    }

    @ParameterizedTest
    @EnumSource
    void aSleepWaitsForAHolderThatDoesNotAnswerUntilNobodyWritesAnyMore(Addressing addressing) {
        start(addressing);
        ConnectorRequest held = registerBeforeItsPromptIsComputed("p9", "d9");
        world.forget(p);
        world.sideChannels().setDeaf(p.address(), true); // its process is stopped
        assertThatExceptionOfType(ReleaseTimeoutException.class)
                .isThrownBy(d::sleep)
                .withMessageContaining("d9");
        d.publish();
        world.elapse(Duration.ofSeconds(480 + 119));
        assertThatExceptionOfType(ReleaseTimeoutException.class).isThrownBy(d::sleep);
        d.publish();
        world.elapse(Duration.ofSeconds(2));
        d.sleep();
        d.wake();
        d.fill(D_BLOCKS, 7);
        finish(held, 1); // of an engine that was stopped, and goes on
        for (int i = 0; i < 50; i++) {
            world.tick();
            p.step();
        }
        assertThat(p.rank().transport().writesPosted()).isEqualTo(1);
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
    }

    /**
     * The negative control: what vLLM's registrations tell is not enough. Its own push connector
     * must not sleep, so its engines are written to without a question.
     */
    @ParameterizedTest
    @CsvSource({"PAGES,true", "VIRTUAL,true", "PAGES,false", "VIRTUAL,false"})
    void onlyTheEpochKeepsARegistrationFromBeforeASleepFromBeingWritten(
            Addressing addressing, boolean tellsEpoch) {
        start(addressing);
        ConnectorRequest held = compute("p9-00000000");
        PushRegistration old =
                PushRegistrations.of(
                        d,
                        "p9-11111111",
                        p,
                        tellsEpoch ? held.id() : "",
                        D_BLOCKS,
                        tellsEpoch,
                        world);
        d.sleep();
        d.wake();
        if (!tellsEpoch) {
            world.sideChannels().serveLikeVllm(d.address());
        }
        d.fill(D_BLOCKS, 7); // another prompt's
        RemotePeer peer = d.rank().transport().load(metadata(p));
        d.rank().transport().notify(peer, old.encode());
        peer.close();
        world.tick();
        finish(held, 1);
        world.settle();
        assertThat(d.holds(D_BLOCKS, 7)).isEqualTo(tellsEpoch);
        assertThat(d.holds(D_BLOCKS, 1)).as("overwritten").isEqualTo(!tellsEpoch);
    }

    @ParameterizedTest
    @EnumSource
    void aRegistrationOfAProcessThatEndedIsNotWritten(Addressing addressing) {
        start(addressing);
        ConnectorRequest held = registerBeforeItsPromptIsComputed("p9", "d9");
        int port = d.scheduler().sideChannelPort();
        d.kill();
        d = world.start(world.pushConfig("D").instanceId("D-again").sideChannelPort(port));
        d.fill(D_BLOCKS, 7);
        finish(held, 1);
        world.settle();
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
        assertTransfers(2);
    }

    @ParameterizedTest
    @EnumSource
    void aHandOverFromBeforeTheHoldersSleepIsNotWritten(Addressing addressing) {
        start(addressing);
        KvTransferParams params = p.prefill("p9", TOKENS, P_BLOCKS, 1);
        world.tick();
        p.sleep();
        p.wake();
        d.decode("d9", TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(d.failed()).containsExactly("d9");
        assertThat(p.rank().transport().writesPosted()).isZero();
    }

    /** It had claimed the request, and P slept before the message came. */
    @ParameterizedTest
    @EnumSource
    void whoeverRegistersAtASleeperLearnsOfItAtOnceAndItsBlocksAreFree(Addressing addressing) {
        start(addressing);
        assertTransfers(1);
        KvTransferParams params = p.prefill("p9", TOKENS, P_BLOCKS, 1);
        world.tick();
        d.decode("d9", TOKENS, params, D_BLOCKS);
        d.step(); // asks
        boolean _ = world.handshakes().runNext();
        sleepAndForget(p);
        d.step(); // registers
        long before = world.nanoTime();
        d.fill(D_BLOCKS, 7);
        runUntil(() -> d.received().contains("d9"));
        assertThat(world.nanoTime() - before).isLessThan(Duration.ofMillis(1_500).toNanos());
        assertThat(d.failed()).contains("d9");
        d.sleep();
        d.wake();
        p.wake();
        d.fill(D_BLOCKS, 7);
        settleTicks();
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
        assertTransfers(3);
    }

    @ParameterizedTest
    @EnumSource
    void whoeverComesToASleeperIsRefusedBeforeItRegisters(Addressing addressing) {
        start(addressing);
        assertTransfers(1);
        KvTransferParams params = p.prefill("p9", TOKENS, P_BLOCKS, 1);
        world.tick();
        sleepAndForget(p);
        long before = world.nanoTime();
        d.decode("d9", TOKENS, params, D_BLOCKS);
        runUntil(() -> d.received().contains("d9"));
        assertThat(world.nanoTime() - before).isLessThan(Duration.ofMillis(50).toNanos());
        assertThat(d.failed()).contains("d9");
        assertThat(d.abandoned()).as("nothing can be written").isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void whoeverComesToARestartedHolderIsRefused(Addressing addressing) {
        start(addressing);
        assertTransfers(1);
        KvTransferParams params = p.prefill("p9", TOKENS, P_BLOCKS, 1);
        int port = p.scheduler().sideChannelPort();
        p.kill();
        p = world.start(world.pushConfig("P").instanceId("P-again").sideChannelPort(port));
        long before = world.nanoTime();
        d.decode("d9", TOKENS, params, D_BLOCKS);
        runUntil(() -> d.received().contains("d9"));
        assertThat(world.nanoTime() - before).isLessThan(Duration.ofMillis(50).toNanos());
        assertThat(d.failed()).contains("d9");
        assertTransfers(2);
    }

    /** The message is lost with the process, so nobody would ever answer it. */
    @ParameterizedTest
    @EnumSource
    void whoeverRegisteredAtAProcessThatIsReplacedLearnsOfItAtOnce(Addressing addressing) {
        start(addressing);
        ConnectorRequest held = registerBeforeItsPromptIsComputed("p9", "d9");
        assertThat(held.id()).isEqualTo("p9");
        int port = p.scheduler().sideChannelPort();
        p.kill();
        p = world.start(world.pushConfig("P").instanceId("P-again").sideChannelPort(port));
        long before = world.nanoTime();
        runUntil(() -> d.received().contains("d9"));
        assertThat(world.nanoTime() - before).isLessThan(Duration.ofMillis(1_500).toNanos());
        assertThat(d.failed()).contains("d9");
    }

    @ParameterizedTest
    @EnumSource
    void aHoldThatIsTakenBackFailsWhoWaitsForItAtOnce(Addressing addressing) {
        start(addressing);
        ConnectorRequest held = registerBeforeItsPromptIsComputed("p8", "d8");
        p.prefill("p9", TOKENS, new int[] {6, 7}, 1);
        world.tick();
        p.scheduler().revoke();
        long before = world.nanoTime();
        runUntil(() -> d.received().contains("d8") && p.sent().contains("p9"));
        assertThat(world.nanoTime() - before).isLessThan(Duration.ofMillis(1_500).toNanos());
        assertThat(d.failed()).contains("d8");
        p.sleep();
        p.wake();
        assertThat(held.id()).isEqualTo("p8");
        assertTransfers(3);
    }

    /** Two engines that fall asleep at the same time let go of one another. */
    @ParameterizedTest
    @EnumSource
    void bothMayFallAsleepWithARegistrationUnderWay(Addressing addressing) {
        start(addressing);
        ConnectorRequest held = registerBeforeItsPromptIsComputed("p9", "d9");
        sleepAndForget(p);
        d.sleep();
        assertThat(d.failed()).contains("d9");
        d.wake();
        p.wake();
        d.fill(D_BLOCKS, 7);
        finish(held, 1);
        settleTicks();
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
        assertTransfers(3);
    }

    /** P has not asked D for anything yet, and will not be answered. */
    @ParameterizedTest
    @EnumSource
    void aSleepTakesBackWhatItsHolderCouldNotBeginBecauseOfIt(Addressing addressing) {
        start(addressing);
        KvTransferParams params = p.prefill("p9", TOKENS, P_BLOCKS, 1);
        world.tick();
        d.decode("d9", TOKENS, params, D_BLOCKS);
        runUntil(() -> d.statistics().handshakes() == 1);
        d.step();
        world.sideChannels().setDeaf(d.address(), true);
        d.sleep();
        world.sideChannels().setDeaf(d.address(), false);
        assertThat(d.failed()).contains("d9");
        d.wake();
        d.fill(D_BLOCKS, 7);
        settleTicks();
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
        assertThat(p.sent()).as("at once").contains("p9");
        assertTransfers(3);
    }

    /** Even if whoever waits does not notice. */
    @ParameterizedTest
    @EnumSource
    void aHolderForgetsInItsSleepWhatItHeld(Addressing addressing) {
        start(addressing);
        p.prefill("p9", TOKENS, P_BLOCKS, 1);
        world.tick();
        p.sleep();
        p.wake();
        d.fill(D_BLOCKS, 7);
        RemotePeer peer = d.rank().transport().load(metadata(p));
        d.rank()
                .transport()
                .notify(
                        peer,
                        PushRegistrations.of(d, "d9", p, "p9", D_BLOCKS, true, world).encode());
        peer.close();
        world.settle();
        assertThat(p.rank().transport().writesPosted()).isZero();
        assertThat(d.holds(D_BLOCKS, 7)).isTrue();
    }

    @ParameterizedTest
    @EnumSource
    void aHoldersSleepWaitsForItsWrites(Addressing addressing) {
        start(addressing);
        p.rank().transport().faults().setReadDelay(Duration.ofMillis(50));
        d.decode("d9", TOKENS, p.prefill("p9", TOKENS, P_BLOCKS, 1), D_BLOCKS);
        runUntil(() -> p.rank().transport().writesPosted() == 1);
        p.sleep();
        world.settle();
        assertThat(d.received()).contains("d9");
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
        assertThat(p.sent()).contains("p9");
    }

    @ParameterizedTest
    @EnumSource
    void aRevocationFreesUnwrittenHandOversAndFailsWhoWaits(Addressing addressing) {
        start(addressing);
        assertTransfers(1);
        p.prefill("p9", TOKENS, P_BLOCKS, 1);
        world.tick();
        p.scheduler().revoke();
        runUntil(() -> p.sent().contains("p9"));
        assertThat(p.statistics().revokedRequests()).isEqualTo(1);
        p.sleep();
        p.wake();
        assertTransfers(2);
    }

    @ParameterizedTest
    @EnumSource
    void withoutReRegistrationOfTheWaitingEngineNothingArrivesAndNoErrorIsSeen(
            Addressing addressing) {
        start(addressing);
        ModelEngine faulty = world.start(world.pushConfig("F").skipReregistration(true));
        faulty.sleep();
        faulty.wake();
        faulty.decode("f1", TOKENS, p.prefill("p1", TOKENS, P_BLOCKS, 1), D_BLOCKS);
        world.settle();
        assertThat(faulty.received()).containsExactly("f1");
        assertThat(faulty.failed()).as("nobody notices").isEmpty();
        assertThat(faulty.holds(D_BLOCKS, 1)).isEqualTo(addressing == Addressing.VIRTUAL);
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatWaitsForItsTurnKeepsItsBlocksHeld(Addressing addressing) {
        start(addressing);
        KvTransferParams params = p.prefill("p9", TOKENS, P_BLOCKS, 1);
        ConnectorRequest request = new ConnectorRequest("d9", TOKENS, params);
        d.scheduler().onArrival(request);
        for (int second = 0; second < 100; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(p.sent()).isEmpty();
        d.decode("d9", TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(d.holds(D_BLOCKS, 1)).isTrue();
    }

    /** P computes a prompt, which has not ended. */
    private ConnectorRequest compute(String id) {
        ConnectorRequest request = new ConnectorRequest(id, TOKENS, Params.prefill());
        p.scheduler().onArrival(request);
        p.scheduler().onAllocated(request, P_BLOCKS, 0, 0);
        world.tick();
        return request;
    }

    private void finish(ConnectorRequest request, long content) {
        p.fill(P_BLOCKS, content);
        HandOver handOver = p.scheduler().onFinished(request, FinishKind.LENGTH, P_BLOCKS, TOKENS);
        assertThat(handOver.holdBlocks()).isTrue();
    }

    /** As with a router that asks both engines at once. */
    private ConnectorRequest registerBeforeItsPromptIsComputed(String held, String waiting) {
        KvTransferParams like = p.prefill("warm", TOKENS, P_BLOCKS, 1);
        d.decode("warmed", TOKENS, like, D_BLOCKS);
        world.settle();
        ConnectorRequest request = compute(held);
        KvTransferParams params = Params.changed(like, json -> json.put("remote_request_id", held));
        d.decode(waiting, TOKENS, params, D_BLOCKS);
        for (int i = 0; i < 5; i++) {
            world.tick();
        }
        assertThat(d.received()).containsExactly("warmed");
        return request;
    }

    private void assertTransfers(long content) {
        String id = "r" + requests++;
        KvTransferParams params = p.prefill("p" + id, TOKENS, P_BLOCKS, content);
        d.decode("d" + id, TOKENS, params, D_BLOCKS);
        world.settle();
        assertThat(d.received()).contains("d" + id);
        assertThat(d.failed()).doesNotContain("d" + id);
        assertThat(d.holds(D_BLOCKS, content)).isTrue();
        assertThat(p.sent()).contains("p" + id);
    }

    private void assertHandshakes(long each) {
        assertThat(d.statistics().handshakes()).isEqualTo(each);
        assertThat(p.statistics().handshakes()).isEqualTo(each);
    }

    private void runUntil(BooleanSupplier condition) {
        for (int i = 0; i < 3_000 && !condition.getAsBoolean(); i++) {
            world.tick();
        }
        assertThat(condition.getAsBoolean()).isTrue();
    }

    /** P told D nothing, as if its messages were lost. */
    private void sleepAndForget(ModelEngine holder) {
        holder.sleep();
        assertThat(d.rank().transport().messages().size()).isLessThan(3);
    }

    private void settleTicks() {
        for (int i = 0; i < 2_000; i++) {
            world.tick();
        }
    }

    private static TransportMetadata metadata(ModelEngine engine) {
        return engine.rank().worker().payload().metadata().agentMetadata();
    }
}
