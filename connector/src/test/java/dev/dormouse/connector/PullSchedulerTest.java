package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.tuple;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.transport.TransportMetadata;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The scheduler's half by itself. */
final class PullSchedulerTest {
    private static final TransferStatistics NONE = TransferStatistics.NONE;

    private long nowNanos = 10_000_000_000L;
    private final ModelSideChannels sideChannels = new ModelSideChannels();
    private final PullScheduler scheduler =
            new PullScheduler(
                    Params.config("E").build(),
                    sideChannels.surroundings(() -> nowNanos, 0),
                    () -> {});

    @Test
    void aFinishedPrefillReturnsAllParametersOfTheProtocol() {
        scheduler.publish(List.of(payload("E", 0)));
        HandOver handOver = prefill("r1", FinishKind.LENGTH, new int[] {7, 3, 9}, 10);

        assertThat(handOver.holdBlocks()).isTrue();
        ObjectNode json = Objects.requireNonNull(handOver.params()).toJson();
        assertThat(json)
                .hasToString(
                        "{\"do_remote_prefill\":true,\"do_remote_decode\":false,"
                                + "\"remote_block_ids\":[[7,3,9]],\"remote_engine_id\":\"E\","
                                + "\"remote_request_id\":\"r1\",\"remote_host\":\"127.0.0.1\","
                                + "\"remote_port\":40000,\"tp_size\":1,\"dcp_size\":1,\"pp_size\":1,"
                                + "\"remote_num_tokens\":10,\"remote_blocks_expiry_time\":null,"
                                + "\"remote_registration_generation\":1,"
                                + "\"remote_registration_epoch\":1,\"remote_instance_id\":\"i\","
                                + "\"remote_lease_deadline\":40.0,\"remote_lease_seconds\":30.0,"
                                + "\"remote_prompt_tokens\":10,"
                                + "\"transfer_mode\":\"pull\"}");
        ConnectorStep step = scheduler.step();
        assertThat(step.inBatch()).containsExactly("r1");
        assertThat(step.leases()).containsEntry("r1", 40.0);
        assertThat(step.schedulerClockSeconds()).isEqualTo(10.0);
        assertThat(scheduler.step().leases()).as("given out once").isEmpty();
    }

    @Test
    void aFirstTokenThatEndsTheTextIsHandedOverToo() {
        scheduler.publish(List.of(payload("E", 0)));
        assertThat(prefill("r1", FinishKind.STOPPED, new int[] {1}, 3).holdBlocks()).isTrue();
    }

    @Test
    void anAbortedOrFailedPrefillHoldsNothing() {
        scheduler.publish(List.of(payload("E", 0)));
        assertThat(prefill("r1", FinishKind.ABORTED, new int[] {1}, 3)).isEqualTo(HandOver.NONE);
        assertThat(prefill("r2", FinishKind.FAILED, new int[] {1}, 3)).isEqualTo(HandOver.NONE);
        assertThat(scheduler.heldRequests()).isZero();
        assertThat(scheduler.step().notProcessed()).containsExactlyInAnyOrder("r1", "r2");
        assertThat(scheduler.step().notProcessed()).as("given out once").isEmpty();
    }

    @Test
    void blocksBeyondTheComputedTokensAreNotHandedOver() {
        scheduler.publish(List.of(payload("E", 0)));
        HandOver handOver = prefill("r1", FinishKind.LENGTH, new int[] {7, 3, 9, 8}, 8);
        assertThat(RemoteHandOver.read(Objects.requireNonNull(handOver.params())).blocks())
                .containsExactly(7, 3);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> prefill("r2", FinishKind.LENGTH, new int[] {7}, 8));
        assertThat(scheduler.heldRequests()).isEqualTo(1);
    }

    @Test
    void aPrefillWithoutBlocksSaysSoAndItsReaderComputesThePromptItself() {
        scheduler.publish(List.of(payload("E", 0)));
        HandOver handOver = prefill("r1", FinishKind.LENGTH, new int[0], 0);
        assertThat(handOver.holdBlocks()).isFalse();
        assertThat(scheduler.step().leases()).isEmpty();
        ConnectorRequest request = new ConnectorRequest("d1", 9, handOver.params());
        assertThat(scheduler.externalTokens(request, 0)).isZero();
    }

    @Test
    void handingOverBeforeTheFirstPublishIsAnError() {
        assertThatIllegalStateException()
                .isThrownBy(() -> prefill("r1", FinishKind.LENGTH, new int[] {1}, 3));
    }

    @Test
    void requestsWithoutParametersAreNoneOfItsBusiness() {
        ConnectorRequest plain = new ConnectorRequest("r", 9, null);
        scheduler.onArrival(plain);
        assertThat(scheduler.externalTokens(plain, 0)).isZero();
        scheduler.onAllocated(plain, new int[] {1}, 0, 0);
        assertThat(scheduler.onFinished(plain, FinishKind.LENGTH, new int[] {1}, 9))
                .isEqualTo(HandOver.NONE);
        ConnectorStep step = scheduler.step();
        assertThat(step.inBatch()).isEmpty();
        assertThat(step.reads()).isEmpty();
        assertThat(step.heartbeats()).isEmpty();
    }

    @Test
    void askingForExternalTokensHasNoEffect() {
        ConnectorRequest request = new ConnectorRequest("d1", 10, Params.remote(_ -> {}));
        for (int i = 0; i < 3; i++) {
            assertThat(scheduler.externalTokens(request, 0)).isEqualTo(10);
            assertThat(scheduler.externalTokens(request, 8)).isEqualTo(2);
            assertThat(scheduler.externalTokens(request, 12)).isZero();
        }
        assertThat(scheduler.step().reads()).isEmpty();
    }

    @Test
    void noMoreIsReadThanTheHolderHas() {
        ConnectorRequest unsaid =
                new ConnectorRequest(
                        "d2", 40, Params.remote(json -> json.remove("remote_num_tokens")));
        assertThat(scheduler.externalTokens(unsaid, 0)).as("three blocks").isEqualTo(12);
        ConnectorRequest lying =
                new ConnectorRequest(
                        "d3", 4000, Params.remote(json -> json.put("remote_num_tokens", 4000)));
        assertThat(scheduler.externalTokens(lying, 0)).isEqualTo(12);
    }

    @Test
    void aPromptOfAnotherLengthIsNotReadButFailsAndItsHolderIsTold() {
        for (int length : new int[] {8, 40}) {
            ConnectorRequest other =
                    new ConnectorRequest("d" + length, length, Params.remote(_ -> {}));
            assertThat(scheduler.externalTokens(other, 0)).isEqualTo(length);
            scheduler.onAllocated(other, IntStream.range(0, 10).toArray(), 0, length);
            assertThat(scheduler.step().reads())
                    .anySatisfy(
                            order -> {
                                assertThat(String.valueOf(order.refusal()))
                                        .contains("had 10 at", "has " + length + " tokens");
                                assertThat(order.awaited()).isTrue();
                            })
                    .anySatisfy(order -> assertThat(order.localBlocks()).isEmpty())
                    .hasSize(2);
        }
        KvTransferParams generatedMore =
                Params.remote(
                        json -> {
                            json.put("remote_num_tokens", 12);
                            json.put("remote_prompt_tokens", 10);
                        });
        ConnectorRequest same = new ConnectorRequest("same", 10, generatedMore);
        scheduler.onAllocated(same, new int[] {1, 2, 3}, 0, 10);
        assertThat(scheduler.step().reads())
                .extracting(ReadOrder::refusal)
                .containsExactly((String) null);
    }

    @Test
    void anotherPromptOfTheSameLengthIsNotReadAndTheHashOfThePromptIsHandedOver() {
        scheduler.publish(List.of(payload("E", 0)));
        int[] blocks = {7, 3, 9};
        ConnectorRequest prompt = new ConnectorRequest("p", 10, _ -> "abc", Params.prefill());
        scheduler.onAllocated(prompt, blocks, 0, 0);
        KvTransferParams params =
                Objects.requireNonNull(
                        scheduler.onFinished(prompt, FinishKind.LENGTH, blocks, 10).params());
        assertThat(params.toJson().path("remote_prompt_hash").asText()).isEqualTo("abc");
        scheduler.step();

        scheduler.onAllocated(new ConnectorRequest("same", 10, _ -> "abc", params), blocks, 0, 10);
        scheduler.onAllocated(new ConnectorRequest("other", 10, _ -> "abd", params), blocks, 0, 10);
        scheduler.onAllocated(new ConnectorRequest("unknown", 10, params), blocks, 0, 10);
        assertThat(scheduler.step().reads())
                .filteredOn(ReadOrder::awaited)
                .extracting(ReadOrder::requestId, ReadOrder::refusal)
                .containsExactly(
                        tuple("same", null),
                        tuple(
                                "other",
                                "the prompt has other tokens here than it had at the producer"),
                        tuple("unknown", null));
    }

    @Test
    void parametersOfAnotherTransferModeAreNotReadAndThoseOfNoneAre() {
        ConnectorRequest pushed =
                new ConnectorRequest(
                        "d1", 10, Params.remote(json -> json.put("transfer_mode", "push")));
        assertThat(scheduler.externalTokens(pushed, 0)).isZero();
        scheduler.onAllocated(pushed, new int[] {1, 2, 3}, 0, 0);
        assertThat(scheduler.step().reads()).isEmpty();
        ConnectorRequest unsaid =
                new ConnectorRequest("d2", 10, Params.remote(json -> json.remove("transfer_mode")));
        assertThat(scheduler.externalTokens(unsaid, 0)).isEqualTo(10);
    }

    @Test
    void afterAWithdrawalNothingIsHeldForWhoeverAsks() throws IOException {
        scheduler.publish(List.of(payload("E", 0)));
        HandOver _ = prefill("r1", FinishKind.LENGTH, new int[] {7, 3, 9}, 10);
        assertThat(claim("r1").held()).isTrue();
        scheduler.withdraw();
        assertThat(claim("r1").held()).isFalse();
    }

    @Test
    void aHoldWhoseBlocksAreSentIsNotConfirmedAnyMore() throws IOException {
        scheduler.publish(List.of(payload("E", 0)));
        HandOver _ = prefill("r1", FinishKind.LENGTH, new int[] {7, 3, 9}, 10);
        scheduler.onReport(new WorkerReport(Set.of("r1"), Set.of(), Set.of(), NONE));
        assertThat(claim("r1").held()).isFalse();
        assertThat(scheduler.heldRequests()).isZero();
    }

    @Test
    void aRequestIsReadAtMostOnceAlsoAcrossPreemption() {
        ConnectorRequest request = new ConnectorRequest("d1", 10, Params.remote(_ -> {}));
        scheduler.onAllocated(request, new int[] {1, 2, 3}, 0, 10);
        assertThat(scheduler.step().reads()).hasSize(1);
        assertThat(scheduler.externalTokens(request, 0)).isZero();
        scheduler.onAllocated(request, new int[] {4, 5, 6}, 0, 0);
        assertThat(scheduler.step().reads()).isEmpty();
        assertThat(scheduler.onFinished(request, FinishKind.LENGTH, new int[] {4, 5, 6}, 12))
                .isEqualTo(HandOver.NONE);
        assertThat(scheduler.step().reads()).isEmpty();
    }

    @Test
    void aReadCoversTheBlocksBehindTheCachedPrefix() {
        ConnectorRequest request = new ConnectorRequest("d1", 10, Params.remote(_ -> {}));
        scheduler.onAllocated(request, new int[] {11, 12, 13, 14}, 4, 6);
        ReadOrder read = scheduler.step().reads().getFirst();
        assertThat(read.localBlocks()).containsExactly(12, 13);
        assertThat(read.remoteBlocks()).containsExactly(7, 3, 9);
        assertThat(read.awaited()).isTrue();
        assertThat(read.remote().requestId()).isEqualTo("p1");
    }

    @Test
    void tokensBeyondThePromptAreNotRead() {
        KvTransferParams more =
                Params.remote(
                        json -> {
                            json.putArray("remote_block_ids")
                                    .addArray()
                                    .add(7)
                                    .add(3)
                                    .add(9)
                                    .add(5);
                            json.put("remote_num_tokens", 16);
                            json.put("remote_prompt_tokens", 10);
                        });
        ConnectorRequest request = new ConnectorRequest("d1", 10, more);
        scheduler.onAllocated(request, new int[] {11, 12, 13}, 4, 6);
        ReadOrder read = scheduler.step().reads().getFirst();
        assertThat(read.remoteBlocks()).containsExactly(7, 3, 9, 5);
        assertThat(read.firstToken()).isEqualTo(4);
        assertThat(read.endToken()).isEqualTo(10);
    }

    @Test
    void impossibleAllocationsChangeNothing() {
        ConnectorRequest request = new ConnectorRequest("d1", 10, Params.remote(_ -> {}));
        for (int[] bad : new int[][] {{0, 40}, {3, 7}, {0, -1}}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(
                            () ->
                                    scheduler.onAllocated(
                                            request, new int[] {1, 2, 3}, bad[0], bad[1]));
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.onAllocated(request, new int[] {1}, 0, 10));
        assertThat(scheduler.step().reads()).isEmpty();
        assertThat(scheduler.externalTokens(request, 0)).isEqualTo(10);
    }

    @Test
    void heartbeatsGoToEachProducerEveryInterval() {
        scheduler.onArrival(new ConnectorRequest("d1", 10, Params.remote(_ -> {})));
        scheduler.onArrival(
                new ConnectorRequest(
                        "d2", 10, Params.remote(json -> json.put("remote_request_id", "p2"))));
        scheduler.onArrival(
                new ConnectorRequest(
                        "d3",
                        10,
                        Params.remote(
                                json -> {
                                    json.put("remote_engine_id", "Q");
                                    json.put("remote_request_id", "q1");
                                })));
        scheduler.onArrival(
                new ConnectorRequest(
                        "d4", 10, Params.remote(json -> json.put("remote_request_id", "a,b"))));
        scheduler.onArrival(new ConnectorRequest("prefill", 10, Params.prefill()));

        assertThat(scheduler.step().heartbeats())
                .extracting(Heartbeat::engineId, Heartbeat::remoteRequestIds)
                .containsExactlyInAnyOrder(
                        tuple("P", List.of("p1", "p2")), tuple("Q", List.of("q1")));
        nowNanos += Duration.ofMillis(4_999).toNanos();
        assertThat(scheduler.step().heartbeats()).isEmpty();
        nowNanos += Duration.ofMillis(1).toNanos();
        assertThat(scheduler.step().heartbeats()).hasSize(2);
    }

    @Test
    void heartbeatsStopWhenARequestHasReadOrHasEnded() {
        scheduler.onArrival(new ConnectorRequest("d1", 10, Params.remote(_ -> {})));
        ConnectorRequest second = new ConnectorRequest("d2", 10, Params.remote(_ -> {}));
        scheduler.onArrival(second);
        ConnectorRequest third = new ConnectorRequest("d3", 10, Params.remote(_ -> {}));
        scheduler.onArrival(third);
        assertThat(scheduler.step().heartbeats().getFirst().remoteRequestIds()).hasSize(3);

        scheduler.onReport(new WorkerReport(Set.of(), Set.of("d1", "unknown"), Set.of(), NONE));
        nowNanos += Duration.ofSeconds(5).toNanos();
        assertThat(scheduler.step().heartbeats().getFirst().remoteRequestIds()).hasSize(2);
        HandOver _ = scheduler.onFinished(second, FinishKind.ABORTED, new int[0], 0);
        scheduler.onAllocated(third, new int[] {1, 2, 3}, 12, 0);
        nowNanos += Duration.ofSeconds(5).toNanos();
        assertThat(scheduler.step().heartbeats()).isEmpty();
    }

    @Test
    void aShortLeaseIsStillRenewedInTime() {
        for (Duration lease :
                List.of(Duration.ofNanos(1), Duration.ofMillis(600), Duration.ofSeconds(1))) {
            ConnectorConfig config = Params.config("S").leaseDuration(lease).build();
            assertThat(config.leaseExtension()).isLessThan(lease);
            PullScheduler brief =
                    new PullScheduler(
                            config, sideChannels.surroundings(() -> nowNanos, 0), () -> {});
            brief.onArrival(new ConnectorRequest("d1", 10, Params.remote(_ -> {})));
            assertThat(brief.step().heartbeats()).hasSize(1);
            nowNanos += lease.toNanos();
            assertThat(brief.step().heartbeats()).hasSize(1);
        }
        assertThat(Params.config("S").build().leaseExtension()).isEqualTo(Duration.ofSeconds(20));
    }

    @Test
    void everyPublishRaisesTheEpochByOneAndStampsItOnAllRanks() {
        PullScheduler wide =
                new PullScheduler(
                        Params.config("E").tpSize(2).build(),
                        sideChannels.surroundings(() -> nowNanos, 0),
                        () -> {});
        assertThat(wide.epoch()).isZero();
        assertThat(wide.sideChannelPort()).isZero();
        for (int epoch = 1; epoch < 4; epoch++) {
            wide.publish(List.of(payload("E", 0), payload("E", 1)));
            assertThat(wide.epoch()).isEqualTo(epoch);
            Map<RankId, byte[]> served =
                    sideChannels.served(
                            new SideChannelAddress("127.0.0.1", wide.sideChannelPort()));
            assertThat(served).containsOnlyKeys(new RankId(0, 0), new RankId(0, 1));
            for (byte[] bytes : served.values()) {
                HandshakePayload payload = HandshakePayload.decode(bytes);
                assertThat(payload.epoch()).isEqualTo(epoch);
                assertThat(payload.instanceId()).isEqualTo("i");
                assertThat(AgentMetadataCodec.decode(payload.agentMetadata()).engineId())
                        .isEqualTo("E");
            }
            wide.withdraw();
            assertThat(
                            sideChannels.served(
                                    new SideChannelAddress("127.0.0.1", wide.sideChannelPort())))
                    .isEmpty();
        }
    }

    @Test
    void payloadsThatAreNotOnePerRankAreRefusedAndChangeNothing() {
        PullScheduler wide =
                new PullScheduler(
                        Params.config("E").tpSize(2).build(),
                        sideChannels.surroundings(() -> nowNanos, 0),
                        () -> {});
        for (List<RankPayload> bad :
                List.of(
                        List.<RankPayload>of(),
                        List.of(payload("E", 0)),
                        List.of(payload("E", 0), payload("E", 0)),
                        List.of(payload("E", 0), payload("E", 2)),
                        List.of(payload("E", 0), payload("F", 1)))) {
            assertThatExceptionOfType(ConnectorException.class).isThrownBy(() -> wide.publish(bad));
        }
        assertThat(wide.epoch()).isZero();
    }

    @Test
    void aTakenPortIsReportedAndNothingIsPublished() {
        PullScheduler first =
                new PullScheduler(
                        Params.config("A").sideChannelPort(5600).build(),
                        sideChannels.surroundings(() -> nowNanos, 0),
                        () -> {});
        PullScheduler second =
                new PullScheduler(
                        Params.config("B").sideChannelPort(5600).build(),
                        sideChannels.surroundings(() -> nowNanos, 0),
                        () -> {});
        first.publish(List.of(payload("A", 0)));
        assertThatExceptionOfType(SideChannelException.class)
                .isThrownBy(() -> second.publish(List.of(payload("B", 0))));
        assertThat(second.epoch()).isZero();
        first.close();
        second.publish(List.of(payload("B", 0)));
        assertThat(second.epoch()).isEqualTo(1);
    }

    private HoldAnswer claim(String requestId) throws IOException {
        SideChannelAddress address =
                new SideChannelAddress("127.0.0.1", scheduler.sideChannelPort());
        try (SideChannel.Conversation conversation = sideChannels.dial(address, Duration.ZERO)) {
            HoldQuestion claim = new HoldQuestion(requestId, "di");
            return HoldAnswer.decode(conversation.ask(claim.encode()).body(), claim, nowNanos);
        }
    }

    private HandOver prefill(String id, FinishKind kind, int[] blocks, int computed) {
        ConnectorRequest request = new ConnectorRequest(id, computed, Params.prefill());
        scheduler.onArrival(request);
        scheduler.onAllocated(request, blocks, 0, 0);
        return scheduler.onFinished(request, kind, blocks, computed);
    }

    private static RankPayload payload(String engineId, int tpRank) {
        ModelWorld world = new ModelWorld();
        KvCacheRegions regions = world.start(engineId).rank().regions();
        return new RankPayload(
                0,
                tpRank,
                AgentMetadata.ofAttention(
                        engineId,
                        TransportMetadata.ofAgent(new byte[] {1}),
                        regions,
                        "FLASH_ATTN"));
    }
}
