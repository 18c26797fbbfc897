package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * A decode engine holds what it has generated, and the prefill engine of the client's next turn
 * reads it; over a transport on which a read that comes too late brings other bytes.
 */
final class NextTurnTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5, 6};
    private static final int[] NEXT_BLOCKS = {7, 8, 9, 2};
    private static final int[] READ_BLOCKS = {7, 8, 9};
    private static final int PROMPT = 8;

    /** Of the first turn's prompt and output: two whole blocks and a part of a third. */
    private static final int HELD = 11;

    private static final int NEXT_PROMPT = 14;
    private static final List<Integer> TOKENS = IntStream.range(100, 140).boxed().toList();
    private static final List<String> OWN_KEYS =
            List.of(
                    "remote_registration_epoch",
                    "remote_instance_id",
                    "remote_lease_deadline",
                    "remote_lease_seconds",
                    "remote_prompt_tokens",
                    "remote_prompt_hash");

    private final ModelWorld world = new ModelWorld(Addressing.VIRTUAL);
    private final ModelEngine p = start("P", Duration.ofDays(300));
    private final ModelEngine d = start("D", Duration.ofDays(-20));

    private ModelEngine start(String engineId, Duration ahead) {
        return world.start(
                world.config(engineId).readBack(new ReadBack(Duration.ofMinutes(8), 4)), ahead);
    }

    @Test
    void aNextTurnIsReadFromTheDecodeEngineOnceAndHandedOverAsUsual() {
        KvTransferParams params = firstTurn("d1");
        assertThat(p.sent()).as("the first turn was read from P").containsExactly("p-d1");
        assertThat(d.scheduler().heldRequests()).isEqualTo(1);

        ConnectorRequest next = next("p2", NEXT_PROMPT, params);
        p.scheduler().onArrival(next);
        assertThat(p.scheduler().step().heartbeats()).as("nobody renews it").isEmpty();
        assertThat(p.admit(next, NEXT_BLOCKS, 0)).isEqualTo(HELD);
        world.settle();
        assertThat(p.received()).containsExactly("p2");
        assertThat(p.failed()).isEmpty();
        assertThat(p.holds(READ_BLOCKS, 7)).isTrue();
        assertThat(d.sent()).containsExactly("d1");
        assertThat(d.scheduler().heldRequests()).isZero();

        assertThat(p.scheduler().externalTokens(next, 0)).as("after a preemption").isZero();
        p.scheduler().onAllocated(next, NEXT_BLOCKS, 0, 0);
        assertThat(p.scheduler().step().reads()).isEmpty();
        p.fill(NEXT_BLOCKS, 8);
        HandOver handOver =
                p.scheduler().onFinished(next, FinishKind.LENGTH, NEXT_BLOCKS, NEXT_PROMPT);
        assertThat(handOver.holdBlocks()).isTrue();
        KvTransferParams prefilled = Objects.requireNonNull(handOver.params());
        assertThat(prefilled.remotePrefill()).isTrue();
        ConnectorRequest second = next("d2", NEXT_PROMPT, prefilled);
        assertThat(d.admit(second, new int[] {0, 1, 2, 3}, 8)).isEqualTo(6);
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(new int[] {0, 1, 2, 3}, 8, 2)).isTrue();
    }

    @Test
    void theFirstTurnIsComputedWhereNothingIsNamed() {
        for (KvTransferParams nothing :
                List.of(
                        Params.prefill(),
                        Params.changed(firstTurn("d1"), json -> json.putNull("remote_host")),
                        Params.changed(
                                firstTurn("d2"),
                                json -> json.putArray("remote_block_ids").addArray()))) {
            ConnectorRequest request = next("p" + nothing.hashCode(), NEXT_PROMPT, nothing);
            assertThat(p.admit(request, NEXT_BLOCKS, 0)).isZero();
            assertThat(p.scheduler().step().reads()).isEmpty();
        }
    }

    @Test
    void theParametersAreThoseOfTheProtocol() {
        PullScheduler alone =
                new PullScheduler(
                        Params.config("E").readBack(ReadBack.DEFAULT).build(),
                        new ModelSideChannels().surroundings(() -> 10_000_000_000L, 0),
                        () -> {});
        alone.publish(
                List.of(
                        new RankPayload(
                                0,
                                0,
                                AgentMetadata.ofAttention(
                                        "E",
                                        TransportMetadata.ofAgent(new byte[] {1}),
                                        p.rank().regions(),
                                        "FLASH_ATTN"))));
        KvTransferParams ofDormouse = Params.remote(_ -> {});
        KvTransferParams ofVllm = Params.remote(json -> json.remove("remote_instance_id"));
        String keys =
                "{\"do_remote_prefill\":false,\"do_remote_decode\":true,"
                        + "\"remote_block_ids\":[[7,3,9]],\"remote_engine_id\":\"E\","
                        + "\"remote_request_id\":\"r1\",\"remote_host\":\"127.0.0.1\","
                        + "\"remote_port\":40000,\"tp_size\":1,\"dcp_size\":1,\"pp_size\":1,"
                        + "\"remote_num_tokens\":11,\"remote_blocks_expiry_time\":%s,"
                        + "\"remote_registration_generation\":1,"
                        + "\"remote_registration_epoch\":1,\"remote_instance_id\":\"i\","
                        + "\"remote_lease_deadline\":490.0,\"remote_lease_seconds\":480.0,"
                        + "\"remote_prompt_hash\":\"eleven\",\"transfer_mode\":\"pull\"}";
        assertThat(decoded(alone, ofDormouse).toJson()).hasToString(keys.formatted("40.0"));
        assertThat(decoded(alone, ofVllm).toJson())
                .as("who gave the prompt may read the next turn, and cannot claim it")
                .hasToString(keys.formatted("490.0"));
        ConnectorStep step = alone.step();
        assertThat(step.inBatch()).containsExactly("r1");
        assertThat(step.leases()).containsEntry("r1", 490.0);
    }

    private static KvTransferParams decoded(PullScheduler scheduler, KvTransferParams prefilled) {
        int[] blocks = {7, 3, 9};
        ConnectorRequest request =
                new ConnectorRequest("r1", 10, n -> n == HELD ? "eleven" : null, prefilled);
        scheduler.onAllocated(request, blocks, 0, 10);
        return Objects.requireNonNull(
                scheduler.onFinished(request, FinishKind.STOPPED, blocks, HELD).params());
    }

    @Test
    void whatAnAbortedRequestHasIsFreedAtOnce() {
        for (FinishKind kind : List.of(FinishKind.ABORTED, FinishKind.FAILED)) {
            ConnectorRequest request = decode("d" + kind);
            assertThat(d.scheduler().onFinished(request, kind, D_BLOCKS, HELD))
                    .isEqualTo(HandOver.NONE);
            assertThat(d.scheduler().step().notProcessed()).containsExactly(request.id());
        }
        assertThat(d.scheduler().heldRequests()).isZero();
    }

    @Test
    void withoutTheSettingNothingIsHeldAndNothingReadBack() {
        KvTransferParams params = firstTurn("d1");
        ModelEngine plain = world.start("plain");
        assertThat(plain.admit(next("p2", NEXT_PROMPT, params), NEXT_BLOCKS, 0)).isZero();
        ConnectorRequest decoded =
                plain.decode("d2", PROMPT, p.prefill("p3", PROMPT, P_BLOCKS, 1), new int[] {4, 5});
        world.settle();
        assertThat(plain.scheduler().onFinished(decoded, FinishKind.LENGTH, D_BLOCKS, HELD))
                .isEqualTo(HandOver.NONE);
        assertThat(d.scheduler().heldRequests()).as("was not told anything").isEqualTo(1);
    }

    @Test
    void onlyWhatIsNotThereYetIsReadAndOnlyIfItIsEnough() {
        assertThat(p.admit(next("p1", NEXT_PROMPT, firstTurn("d1")), NEXT_BLOCKS, 8)).isZero();
        world.settle();
        assertThat(d.sent()).as("is told that it is not needed").contains("d1");

        assertThat(p.admit(next("p2", NEXT_PROMPT, firstTurn("d2")), NEXT_BLOCKS, 4)).isEqualTo(7);
        ReadOrder order = p.scheduler().step().reads().getFirst();
        assertThat(order.firstToken()).isEqualTo(4);
        assertThat(order.endToken()).isEqualTo(HELD);
        assertThat(order.localBlocks()).containsExactly(8, 9);
        assertThat(order.remoteBlocks()).containsExactly(4, 5, 6);
        assertThat(order.awaited()).isTrue();
    }

    @Test
    void aPromptThatDoesNotBeginWithWhatIsHeldIsComputed() {
        List<Integer> changed =
                IntStream.range(0, 40).map(i -> i == 9 ? 1 : 100 + i).boxed().toList();
        ConnectorRequest other =
                new ConnectorRequest("other", NEXT_PROMPT, hashes(changed), firstTurn("d1"));
        assertThat(p.admit(other, NEXT_BLOCKS, 0)).isZero();
        assertThat(p.admit(next("shorter", HELD - 1, firstTurn("d2")), NEXT_BLOCKS, 0)).isZero();
        world.settle();
        assertThat(d.sent()).contains("d1", "d2");
        assertThat(p.rank().transport().readsPosted()).isZero();
        List<Integer> laterChanged =
                IntStream.range(0, 40).map(i -> i == HELD ? 1 : 100 + i).boxed().toList();
        ConnectorRequest same =
                new ConnectorRequest("same", NEXT_PROMPT, hashes(laterChanged), firstTurn("d3"));
        assertThat(p.admit(same, NEXT_BLOCKS, 0)).isEqualTo(HELD);
    }

    @Test
    void aDecodeEngineOfVllmIsReadWithinItsTimeAndAsFarAsThePromptGoes() {
        world.sideChannels().serveLikeVllm(d.address());
        KvTransferParams capped = likeVllm(firstTurnOfVllm("d1"));
        ConnectorRequest shorter = next("p2", 9, capped);
        assertThat(p.admit(shorter, READ_BLOCKS, 0)).isEqualTo(9);
        world.settle();
        assertThat(p.failed()).isEmpty();
        assertThat(p.holds(READ_BLOCKS, 7)).isTrue();

        KvTransferParams inTime = likeVllm(firstTurnOfVllm("d2"));
        world.elapse(Duration.ofSeconds(474));
        p.admit(next("inTime", NEXT_PROMPT, inTime), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).isEmpty();

        KvTransferParams tooClose = likeVllm(firstTurnOfVllm("d3"));
        world.elapse(Duration.ofSeconds(476));
        p.admit(next("tooClose", NEXT_PROMPT, tooClose), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).containsExactly("tooClose");
        assertThat(p.statistics().expiredRequests()).isEqualTo(1);

        KvTransferParams untold =
                Params.changed(
                        likeVllm(firstTurnOfVllm("d4")),
                        json -> json.putNull("remote_blocks_expiry_time"));
        assertThat(p.admit(next("untold", NEXT_PROMPT, untold), NEXT_BLOCKS, 0)).isZero();
    }

    @Test
    void theLastSecondsOfAHoldAreLeftAloneAndThenItEnds() {
        warm();
        KvTransferParams inTime = firstTurn("d1");
        world.elapse(Duration.ofSeconds(474));
        p.admit(next("inTime", NEXT_PROMPT, inTime), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).isEmpty();
        assertThat(p.holds(READ_BLOCKS, 7)).isTrue();

        KvTransferParams late = firstTurn("d2");
        world.elapse(Duration.ofSeconds(476));
        p.admit(next("late", NEXT_PROMPT, late), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).containsExactly("late");
        assertThat(p.statistics().expiredRequests()).isEqualTo(1);
        world.elapse(Duration.ofSeconds(5));
        world.settle();
        assertThat(d.sent()).contains("d2");
        assertThat(d.scheduler().heldRequests()).isZero();
    }

    @Test
    void aDecodeEngineThatSleptInBetweenIsNotReadAnyMore() {
        warm();
        long posted = p.rank().transport().readsPosted();
        KvTransferParams params = firstTurn("d1");
        d.scheduler().revoke();
        world.settle();
        assertThat(d.sent()).as("taken back, as P has said that it is done").contains("d1");
        d.sleep();
        d.wake();
        d.fill(D_BLOCKS, 66);
        p.admit(next("stale", NEXT_PROMPT, params), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).containsExactly("stale");
        assertThat(p.rank().transport().readsPosted()).isEqualTo(posted);
        KvTransferParams fresh = firstTurn("d2");
        p.admit(next("fresh", NEXT_PROMPT, fresh), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).containsExactly("stale");
        assertThat(p.holds(READ_BLOCKS, 7)).isTrue();
    }

    @Test
    void aHoldThatNobodyHasClaimedEndsIfItsRoomIsNeeded() {
        warm();
        KvTransferParams params = firstTurn("d1");
        assertThat(d.scheduler().endHold("d1"))
                .as("its end was promised to readers that do not claim")
                .isFalse();
        world.elapse(Duration.ofSeconds(31));
        assertThat(d.scheduler().endHold("d1")).isTrue();
        assertThat(d.scheduler().endHold("d1")).isTrue();
        p.admit(next("late", NEXT_PROMPT, params), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).containsExactly("late");
        assertThat(d.sent()).contains("d1");
        assertThat(d.statistics().revokedRequests()).isEqualTo(1);
        assertThat(d.scheduler().endHold("d1")).isFalse();
        assertThat(d.scheduler().step().revoked()).isEmpty();
    }

    @Test
    void aHoldThatIsBeingReadStaysUntilItsReaderIsDoneOrMustBe() {
        warm();
        KvTransferParams params = firstTurn("d1");
        world.elapse(Duration.ofSeconds(100));
        p.rank().transport().faults().setReadDelay(Duration.ofSeconds(20));
        p.admit(next("slow", NEXT_PROMPT, params), NEXT_BLOCKS, 0);
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        assertThat(d.scheduler().endHold("d1")).isFalse();
        world.elapse(Duration.ofSeconds(20));
        world.settle();
        assertThat(p.failed()).isEmpty();
        assertThat(p.holds(READ_BLOCKS, 7)).isTrue();

        KvTransferParams unread = firstTurn("d2");
        world.elapse(Duration.ofSeconds(100));
        p.rank().transport().faults().setReadDelay(Duration.ofMinutes(1));
        p.admit(next("dies", NEXT_PROMPT, unread), NEXT_BLOCKS, 0);
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        p.kill();
        assertThat(d.scheduler().endHold("d2")).isFalse();
        world.elapse(Duration.ofSeconds(30));
        assertThat(d.scheduler().endHold("d2")).as("no read outlasts its claim").isTrue();
    }

    @Test
    void whatAnEngineWithoutClaimsMayReadIsHeldToItsEnd() {
        KvTransferParams _ = firstTurnOfVllm("d1");
        world.elapse(Duration.ofSeconds(479));
        assertThat(d.scheduler().endHold("d1")).isFalse();
        d.scheduler().drain(true);
        world.tick();
        assertThat(d.sent()).isEmpty();
    }

    @Test
    void aDrainWaitsNoLongerThanTheUsualLease() {
        KvTransferParams _ = firstTurn("early");
        world.elapse(Duration.ofSeconds(29));
        KvTransferParams _ = firstTurn("late");
        d.scheduler().drain(true);
        world.elapse(Duration.ofSeconds(1));
        world.settle();
        assertThat(d.sent()).containsExactly("early");
        ConnectorRequest request = decode("during");
        assertThat(d.scheduler().onFinished(request, FinishKind.LENGTH, D_BLOCKS, HELD))
                .as("nobody will read it")
                .isEqualTo(HandOver.NONE);
        world.elapse(Duration.ofSeconds(29));
        world.settle();
        assertThat(d.sent()).containsExactlyInAnyOrder("early", "late");
        assertThat(d.scheduler().heldRequests()).isZero();
    }

    @Test
    void anotherPrefillEngineMayTakeTheTurnThatOneCouldNot() {
        KvTransferParams params = firstTurn("d1");
        ConnectorRequest refused = next("refused", NEXT_PROMPT, params);
        p.scheduler().onArrival(refused);
        assertThat(p.scheduler().onFinished(refused, FinishKind.FAILED, new int[0], 0))
                .isEqualTo(HandOver.NONE);
        world.settle();
        assertThat(d.sent()).isEmpty();
        ModelEngine other = start("other", Duration.ZERO);
        other.admit(next("taken", NEXT_PROMPT, params), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(other.failed()).isEmpty();
        assertThat(other.holds(READ_BLOCKS, 7)).isTrue();
    }

    /** P has read from D before. */
    private void warm() {
        p.admit(next("warm", NEXT_PROMPT, firstTurn("warm-d")), NEXT_BLOCKS, 0);
        world.settle();
        assertThat(p.failed()).isEmpty();
    }

    /** What D returns of a first turn whose output it holds, with content 7. */
    private KvTransferParams firstTurn(String id) {
        return finished(decode(id));
    }

    /** The same, of a prompt that came from an engine of vLLM. */
    private KvTransferParams firstTurnOfVllm(String id) {
        KvTransferParams prefilled = likeVllm(p.prefill("p-" + id, PROMPT, P_BLOCKS, 1));
        return finished(decode(id, prefilled));
    }

    private ConnectorRequest decode(String id) {
        return decode(id, p.prefill("p-" + id, PROMPT, P_BLOCKS, 1));
    }

    private ConnectorRequest decode(String id, KvTransferParams prefilled) {
        ConnectorRequest request = next(id, PROMPT, prefilled);
        assertThat(d.admit(request, new int[] {4, 5}, 0)).isEqualTo(PROMPT);
        world.settle();
        assertThat(d.failed()).doesNotContain(id);
        return request;
    }

    private KvTransferParams finished(ConnectorRequest request) {
        d.fill(D_BLOCKS, 7);
        HandOver handOver = d.scheduler().onFinished(request, FinishKind.LENGTH, D_BLOCKS, HELD);
        assertThat(handOver.holdBlocks()).isTrue();
        world.tick();
        return Objects.requireNonNull(handOver.params());
    }

    private static ConnectorRequest next(String id, int promptTokens, KvTransferParams params) {
        return new ConnectorRequest(id, promptTokens, hashes(TOKENS), params);
    }

    private static PrefixHash hashes(List<Integer> tokens) {
        return count -> Integer.toHexString(tokens.subList(0, count).hashCode());
    }

    private static KvTransferParams likeVllm(KvTransferParams params) {
        return Params.changed(params, json -> json.remove(OWN_KEYS));
    }
}
