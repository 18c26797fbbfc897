package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Parameters that came through clients and routers. */
final class KvTransferParamsTest {
    private final PullScheduler scheduler =
            new PullScheduler(
                    Params.config("E").build(),
                    new ModelSideChannels().surroundings(() -> 0, 0),
                    () -> {});

    @Test
    void parametersThatCannotBeUnderstoodAskForNoReadAndSayWhy() {
        Map<String, Consumer<ObjectNode>> problems =
                Map.ofEntries(
                        Map.entry("remote_engine_id", json -> json.remove("remote_engine_id")),
                        Map.entry("remote_request_id", json -> json.putNull("remote_request_id")),
                        Map.entry("remote_host", json -> json.put("remote_host", "a b")),
                        Map.entry("remote_port", json -> json.put("remote_port", 70_000)),
                        Map.entry(
                                "remote_block_ids",
                                json -> json.putArray("remote_block_ids").add(1)),
                        Map.entry("tp_size", json -> json.put("tp_size", 0)),
                        Map.entry("pp_size", json -> json.put("pp_size", 1.5)),
                        Map.entry("remote_num_tokens", json -> json.put("remote_num_tokens", -1)),
                        Map.entry(
                                "remote_registration_epoch",
                                json -> json.put("remote_registration_epoch", "1")),
                        Map.entry(
                                "remote_registration_generation",
                                json -> json.put("remote_registration_generation", -1)),
                        Map.entry("remote_instance_id", json -> json.put("remote_instance_id", 5)));
        problems.forEach(
                (key, change) -> {
                    KvTransferParams params = Params.remote(change);
                    assertThat(params.problem()).contains(key);
                    ConnectorRequest request = new ConnectorRequest(key, 10, params);
                    scheduler.onArrival(request);
                    assertThat(scheduler.externalTokens(request, 0)).isZero();
                    scheduler.onAllocated(request, new int[] {1, 2, 3}, 0, 0);
                    assertThat(scheduler.onFinished(request, FinishKind.LENGTH, new int[] {1}, 4))
                            .isEqualTo(HandOver.NONE);
                });
        assertThat(scheduler.step().reads()).isEmpty();
        assertThat(scheduler.step().heartbeats()).isEmpty();
        assertThat(Params.remote(_ -> {}).problem()).isNull();
        assertThat(Params.prefill().problem()).isNull();
    }

    @Test
    void blockIdsAreCheckedOneByOne() {
        for (String ids :
                List.of(
                        "null",
                        "5",
                        "[5]",
                        "[[1],[2]]",
                        "[[-1]]",
                        "[[1.5]]",
                        "[[\"1\"]]",
                        "[[4294967296]]",
                        "{}")) {
            KvTransferParams params =
                    Params.parse(
                            Params.remote(_ -> {}).toJson().toString().replace("[[7,3,9]]", ids));
            assertThat(params.problem()).as(ids).contains("remote_block_ids");
        }
        for (String ids : List.of("[]", "[[]]")) {
            KvTransferParams params =
                    Params.parse(
                            Params.remote(_ -> {}).toJson().toString().replace("[[7,3,9]]", ids));
            assertThat(params.problem()).as(ids).isNull();
        }
    }

    @Test
    void unknownKeysOfARequestSurvive() {
        KvTransferParams params = Params.remote(json -> json.put("key_of_tomorrow", 1));
        assertThat(params.problem()).isNull();
        assertThat(params.toJson().path("key_of_tomorrow").asInt()).isEqualTo(1);
    }

    @Test
    void whatItsHolderHadCachedIsToldUnlessItIsNoCount() {
        KvTransferParams params = Params.remote(_ -> {});
        assertThat(params.prefillCachedTokens()).isEmpty();
        KvTransferParams told = params.withPrefillCachedTokens(8);
        assertThat(told.prefillCachedTokens()).hasValue(8);
        assertThat(told.toJson().path("remote_prefill_cached_tokens").asInt()).isEqualTo(8);
        assertThat(params.prefillCachedTokens()).as("unchanged").isEmpty();
        for (Consumer<ObjectNode> bad :
                List.<Consumer<ObjectNode>>of(
                        json -> json.put("remote_prefill_cached_tokens", -1),
                        json -> json.put("remote_prefill_cached_tokens", 1L << 40),
                        json -> json.put("remote_prefill_cached_tokens", 1.5),
                        json -> json.put("remote_prefill_cached_tokens", "8"))) {
            assertThat(Params.remote(bad).prefillCachedTokens()).isEmpty();
        }
    }

    @Test
    void theFirstTokenIsForWhoReadsTheSamePromptAndChoosesInTheSameWay() {
        KvTransferParams params = Params.remote(json -> json.put("remote_prompt_hash", "h"));
        assertThat(params.firstToken("greedy")).isEmpty();
        KvTransferParams told = params.withFirstToken(0, "greedy");
        assertThat(params.firstToken("greedy")).as("unchanged").isEmpty();
        assertThat(told.firstToken("greedy")).hasValue(0);
        assertThat(told.problem()).isNull();
        assertThat(told.toJson().path("remote_first_token_id").asInt(-1)).isZero();
        assertThat(told.toJson().path("remote_first_token_sampling").asText()).isEqualTo("greedy");
        assertThat(told.firstToken("random")).isEmpty();
        for (Consumer<ObjectNode> bad :
                List.<Consumer<ObjectNode>>of(
                        json -> json.put("do_remote_prefill", false),
                        json -> json.remove("remote_prompt_hash"),
                        json -> json.put("remote_prompt_hash", 1),
                        json -> json.remove("remote_first_token_id"),
                        json -> json.put("remote_first_token_id", -1),
                        json -> json.put("remote_first_token_id", 1L << 32),
                        json -> json.put("remote_first_token_id", 1.5),
                        json -> json.put("remote_first_token_id", "1"),
                        json -> json.putArray("remote_first_token_id").add(1),
                        json -> json.remove("remote_first_token_sampling"),
                        json -> json.put("remote_first_token_sampling", 1),
                        json -> json.putNull("remote_first_token_sampling"))) {
            KvTransferParams changed = Params.changed(told, bad);
            assertThat(changed.firstToken("greedy")).as("%s", changed.toJson()).isEmpty();
        }
    }

    @Test
    void whatIsNoObjectIsRefused() {
        for (String json : List.of("[]", "1", "null", "\"x\"")) {
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(() -> Params.parse(json))
                    .withMessageContaining("JSON object");
        }
    }

    @Test
    void theObjectIsCopiedBothWays() {
        ObjectNode json = Params.remote(_ -> {}).toJson();
        KvTransferParams params = KvTransferParams.of(json);
        json.put("remote_port", 1);
        params.toJson().put("remote_port", 2);
        assertThat(params.toJson().path("remote_port").asInt()).isEqualTo(5600);
    }

    @Test
    void defaultsStandInForWhatOldHoldersDoNotSay() {
        RemoteHandOver read =
                RemoteHandOver.read(
                        Params.remote(
                                json ->
                                        json.remove(
                                                List.of(
                                                        "tp_size",
                                                        "pp_size",
                                                        "remote_num_tokens",
                                                        "remote_instance_id",
                                                        "remote_registration_epoch",
                                                        "remote_registration_generation"))));
        assertThat(read.source())
                .isEqualTo(new RemoteSource("P", null, "p1", "127.0.0.1", 5600, 1, 1, 0));
        assertThat(read.tokens()).isZero();
        assertThat(read.blocks()).containsExactly(7, 3, 9);
    }

    @Test
    void requestIdsAndLeasesOutOfRangeAreRefused() {
        for (Consumer<ObjectNode> bad :
                List.<Consumer<ObjectNode>>of(
                        json -> json.put("remote_request_id", "x".repeat(513)),
                        json -> json.put("remote_request_id", "é".repeat(300)),
                        json -> json.put("remote_lease_deadline", "soon"),
                        json -> json.put("remote_lease_deadline", 1e300),
                        json -> json.put("remote_lease_seconds", -1),
                        json -> json.put("remote_lease_seconds", 1e6),
                        json -> json.put("remote_prompt_tokens", -5))) {
            assertThat(Params.remote(bad).problem()).contains("kv_transfer_params: remote_");
        }
        for (Consumer<ObjectNode> atItsBound :
                List.<Consumer<ObjectNode>>of(
                        json -> json.put("remote_request_id", "x".repeat(512)),
                        json -> json.put("remote_engine_id", "x".repeat(4_096)),
                        json -> json.put("remote_lease_deadline", -1e9),
                        json -> json.put("remote_lease_deadline", 1e9),
                        json -> json.put("remote_lease_seconds", 0),
                        json -> json.put("remote_lease_seconds", 86_400))) {
            assertThat(Params.remote(atItsBound).problem()).isNull();
        }
        assertThat(Params.remote(json -> json.remove("remote_host")).problem())
                .contains("remote_host is missing, but must be present");
        assertThat(Params.remote(json -> json.put("remote_host", "a b")).problem())
                .contains("remote_host is '\"a b\"', but must be");
        assertThat(
                        RemoteHandOver.read(
                                        Params.remote(
                                                json -> json.put("remote_blocks_expiry_time", 7.5)))
                                .source()
                                .lease()
                                .deadlineSeconds())
                .as("as vLLM's decode engines tell it")
                .isEqualTo(7.5);
    }
}
