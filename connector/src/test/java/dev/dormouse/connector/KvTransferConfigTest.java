package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** vLLM's {@code --kv-transfer-config}, as its users write it. */
final class KvTransferConfigTest {
    private static final String START = "{\"kv_connector\": \"NixlConnector\", \"kv_role\": ";

    @Test
    void theUsualConfigurationNeedsTwoKeys() {
        KvTransferConfig config = parse(START + "\"kv_producer\"}");
        assertThat(config.role()).isEqualTo(KvTransferConfig.Role.PRODUCER);
        assertThat(config)
                .usingRecursiveComparison()
                .ignoringFields("role", "connector")
                .isEqualTo(KvTransferConfig.NONE);
    }

    @Test
    void theBoundsOfANumberBelongToIt() {
        for (String extra :
                List.of(
                        "\"num_threads\": 1",
                        "\"num_threads\": 1024",
                        "\"engine_ttl\": 31536000",
                        "\"engine_ttl\": -31536000",
                        "\"kv_lease_duration\": 86400")) {
            assertThat(extra(extra).connector()).as(extra).isEqualTo("NixlPullConnector");
        }
        for (String extra :
                List.of(
                        "\"num_threads\": 0",
                        "\"num_threads\": 1025",
                        "\"engine_ttl\": 31536001",
                        "\"kv_lease_duration\": 86401")) {
            assertThatExceptionOfType(ConnectorException.class)
                    .as(extra)
                    .isThrownBy(() -> extra(extra));
        }
    }

    private static KvTransferConfig extra(String entry) {
        return parse(
                "{\"kv_connector\": \"NixlPullConnector\", \"kv_role\": \"kv_consumer\","
                        + " \"kv_connector_extra_config\": {"
                        + entry
                        + "}}");
    }

    @Test
    void everyKeyOfTheProtocolIsUnderstood() {
        KvTransferConfig config =
                parse(
                        """
                        {"kv_connector": "NixlPullConnector", "kv_role": "kv_consumer",
                         "engine_id": "e", "kv_buffer_device": "cpu",
                         "enable_permute_local_kv": false, "kv_load_failure_policy": "recompute",
                         "kv_connector_extra_config": {
                           "backends": ["UCX"], "num_threads": 8, "kv_lease_duration": 12,
                           "decoder_kv_blocks_ttl": 480, "kv_recompute_threshold": 64,
                           "bidirectional_kv_xfer": false, "engine_ttl": 1.5,
                           "enforce_handshake_compat": false, "push_registration_timeout": 480,
                           "allowed_peers": ["10.0.0.0/8"], "allowed_peer_ports": "5600-5601",
                           "max_peer_blocks": 1000,
                           "compat": {"model": "m2", "is_hma_enabled": false}}}
                        """);
        assertThat(config.role()).isEqualTo(KvTransferConfig.Role.CONSUMER);
        assertThat(config.loadFailurePolicy()).isEqualTo(LoadFailurePolicy.RECOMPUTE);
        assertThat(config.threads()).isEqualTo(8);
        assertThat(config.compatibility())
                .isEqualTo(Map.of("model", "m2", "is_hma_enabled", "false"));
        assertThat(config.warnings())
                .hasSize(3)
                .anyMatch(warning -> warning.contains("decoder_kv_blocks_ttl"))
                .anyMatch(warning -> warning.contains("kv_recompute_threshold"))
                .anyMatch(warning -> warning.contains("push_registration_timeout"));

        ConnectorConfig.Builder builder = Params.config("before");
        config.applyTo(builder);
        ConnectorConfig applied = builder.build();
        assertThat(applied.engineId()).isEqualTo("e");
        assertThat(applied.leaseDuration()).isEqualTo(Duration.ofSeconds(12));
        assertThat(applied.engineTtl()).isEqualTo(Duration.ofMillis(1_500));
        assertThat(applied.enforceCompatibility()).isFalse();
        assertThat(applied.peers().maxBlocks()).isEqualTo(1_000);
        SideChannelAddress peer = new SideChannelAddress("10.0.0.1", 5601);
        assertThat(applied.peers().refusal(peer, InetAddress.ofLiteral("10.0.0.1"))).isNull();
        assertThat(applied.peers().refusal(peer, InetAddress.ofLiteral("11.0.0.1"))).isNotNull();
        assertThat(
                        applied.peers()
                                .refusal(
                                        new SideChannelAddress("10.0.0.1", 5602),
                                        InetAddress.ofLiteral("10.0.0.1")))
                .isNotNull();
    }

    @Test
    void thePushConnectorHasATimeOfItsOwn() {
        KvTransferConfig config =
                parse(
                        """
                        {"kv_connector": "NixlPushConnector", "kv_role": "kv_consumer",
                         "kv_connector_extra_config": {"push_registration_timeout": 60}}
                        """);
        assertThat(config.isPush()).isTrue();
        assertThat(config.warnings()).isEmpty();
        assertThat(config.sleepRefusal()).isNull();
        ConnectorConfig.Builder builder = Params.config("e");
        config.applyTo(builder);
        assertThat(builder.build().pushTimeout()).isEqualTo(Duration.ofMinutes(1));
        assertThat(ModelEngine.FACTORS.pushed().hash()).isNotEqualTo(ModelEngine.FACTORS.hash());
    }

    @Test
    void aPushIsWaitedForAsLongAsDecodeEnginesHoldBlocksUnlessItsTimeIsSaid() {
        String config =
                """
                {"kv_connector": "NixlPushConnector", "kv_role": "kv_consumer",
                 "kv_connector_extra_config": {"decoder_kv_blocks_ttl": 90%s}}
                """;
        KvTransferConfig unsaid = parse(config.formatted(""));
        assertThat(unsaid.pushTimeout()).isEqualTo(Duration.ofSeconds(90));
        assertThat(unsaid.warnings()).isEmpty();
        assertThat(parse(config.formatted(", \"push_registration_timeout\": 7")).pushTimeout())
                .isEqualTo(Duration.ofSeconds(7));
    }

    @Test
    void readingFromDecodeEnginesIsSwitchedOnWithVllmsDefaults() {
        assertThat(parse(withExtra("\"bidirectional_kv_xfer\": true")).readBack())
                .isEqualTo(new ReadBack(Duration.ofMinutes(8), 64));
        KvTransferConfig config =
                parse(
                        withExtra(
                                "\"decoder_kv_blocks_ttl\": 60, \"kv_recompute_threshold\": 0,"
                                        + " \"bidirectional_kv_xfer\": true"));
        assertThat(config.warnings()).isEmpty();
        ConnectorConfig.Builder builder = Params.config("e");
        config.applyTo(builder);
        assertThat(builder.build().readBack()).isEqualTo(new ReadBack(Duration.ofMinutes(1), 0));
        assertThat(parse(withExtra("\"bidirectional_kv_xfer\": false")).readBack()).isNull();
    }

    @Test
    void readingFromDecodeEnginesIsRefusedWhereItCannotWork() {
        String on = "\"kv_connector_extra_config\": {\"bidirectional_kv_xfer\": true}}";
        assertRefused(
                "{\"kv_connector\": \"NixlPushConnector\", \"kv_role\": \"kv_consumer\"," + on,
                "bidirectional_kv_xfer",
                "push");
        assertRefused(
                multi(
                        "kv_consumer",
                        "{\"kv_connector\": \"NixlConnector\","
                                + on
                                + ", {\"kv_connector\": \"NixlPushConnector\"}"),
                "bidirectional_kv_xfer",
                "2 connectors");
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(
                        () ->
                                ConnectorConfig.builder(ModelEngine.FACTORS.pushed(), 4)
                                        .readBack(ReadBack.DEFAULT)
                                        .build())
                .withMessageContaining("readBack");
    }

    @Test
    void severalConnectorsInheritRoleAndEngineIdUnlessTheySayThem() {
        KvTransferConfig config =
                parse(
                        multi(
                                "kv_consumer",
                                """
                                {"kv_connector": "NixlConnector", "engine_id": "own"},
                                {"kv_connector": "NixlPushConnector",
                                 "kv_connector_extra_config": {"kv_lease_duration": 7}}
                                """));
        assertThat(config.children())
                .extracting(KvTransferConfig::connector)
                .containsExactly("NixlConnector", "NixlPushConnector");
        assertThat(config.children())
                .extracting(KvTransferConfig::engineId)
                .containsExactly("own", "all");
        assertThat(config.children())
                .extracting(KvTransferConfig::role)
                .containsOnly(KvTransferConfig.Role.CONSUMER);
        assertThat(config.children().get(1).leaseDuration()).isEqualTo(Duration.ofSeconds(7));
        assertThat(config.sleepRefusal()).isNull();
    }

    @Test
    void severalConnectorsAreRefusedThatCannotWorkTogether() {
        String two =
                "{\"kv_connector\": \"NixlConnector\"}, {\"kv_connector\": \"NixlPushConnector\"}";
        assertRefused(multi("kv_producer", two), "kv_consumer", "kv_transfer_params");
        assertRefused(
                multi("kv_consumer", two + ", " + START + "\"kv_both\"}"),
                "kv_role of one of connectors differs");
        assertRefused(
                multi("kv_producer", START + "\"kv_consumer\"}"),
                "kv_role of one of connectors differs");
        assertRefused(multi("kv_consumer", ""), "connectors is missing");
        assertRefused(multi("kv_consumer", multi("kv_consumer", two)), "no MultiConnector again");
        assertRefused(multi("kv_consumer", "3"), "connectors");
        assertRefused(
                "{\"kv_connector\": \"MultiConnector\", \"kv_role\": \"kv_consumer\","
                        + " \"kv_connector_extra_config\": {\"backends\": [\"UCX\"]}}",
                "'backends'",
                "MultiConnector");
    }

    @Test
    void aFailurePolicyOfOneOfSeveralConnectorsIsWarnedOf() {
        assertThat(
                        parse(
                                        multi(
                                                "kv_consumer",
                                                START
                                                        + "\"kv_consumer\","
                                                        + " \"kv_load_failure_policy\": \"fail\"}"))
                                .warnings())
                .singleElement()
                .asString()
                .contains("kv_load_failure_policy of one of connectors has no effect");
    }

    private static String multi(String role, String children) {
        return "{\"kv_connector\": \"MultiConnector\", \"kv_role\": \""
                + role
                + "\", \"engine_id\": \"all\", \"kv_connector_extra_config\": {\"connectors\": ["
                + children
                + "]}}";
    }

    @Test
    void kvBothAndLegacyKeysWarn() {
        assertThat(parse(START + "\"kv_both\"}").warnings())
                .singleElement()
                .asString()
                .contains("deprecated");
        assertThat(parse(START + "\"kv_producer\", \"kv_rank\": 0, \"kv_ip\": \"x\"}").warnings())
                .hasSize(2);
    }

    @Test
    void anEngineTtlOfZeroOrLessNeverEvicts() {
        for (String ttl : List.of("0", "-1", "-0.5")) {
            assertThat(parse(withExtra("\"engine_ttl\": " + ttl)).engineTtl())
                    .isEqualTo(Duration.ZERO);
        }
    }

    @Test
    void unknownKeysAndWrongValuesAreNamed() {
        assertRefused(START + "\"kv_producer\", \"kv_conector\": 1}", "'kv_conector'");
        assertRefused(withExtra("\"kv_lease\": 1"), "'kv_lease'", "kv_connector_extra_config");
        assertRefused(START + "\"producer\"}", "kv_role", "producer", "kv_consumer");
        assertRefused("{\"kv_role\": \"kv_both\"}", "kv_connector is missing");
        assertRefused("{\"kv_connector\": \"NixlConnector\"}", "kv_role is missing");
        assertRefused(
                "{\"kv_connector\": \"MooncakeConnector\", \"kv_role\": \"kv_both\"}",
                "MooncakeConnector",
                "NixlPullConnector",
                "NixlPushConnector");
        assertRefused(START + "\"kv_producer\", \"kv_buffer_device\": \"cuda\"}", "cuda", "cpu");
        assertRefused(withExtra("\"backends\": [\"UCX\", \"GDS\"]"), "backends", "GDS", "UCX");
        assertRefused(withExtra("\"bidirectional_kv_xfer\": 1"), "bidirectional_kv_xfer");
        assertRefused(withExtra("\"decoder_kv_blocks_ttl\": 0"), "decoder_kv_blocks_ttl");
        assertRefused(withExtra("\"kv_recompute_threshold\": -1"), "kv_recompute_threshold");
        assertRefused(withExtra("\"kv_lease_duration\": 0"), "kv_lease_duration");
        assertRefused(withExtra("\"kv_lease_duration\": 1.5"), "kv_lease_duration");
        assertRefused(withExtra("\"kv_lease_duration\": \"30\""), "kv_lease_duration");
        assertRefused(withExtra("\"engine_ttl\": 1e300"), "engine_ttl");
        assertRefused(withExtra("\"enforce_handshake_compat\": 1"), "enforce_handshake_compat");
        assertRefused(withExtra("\"allowed_peer_ports\": \"a-b\""), "'a-b'");
        assertRefused(withExtra("\"allowed_peers\": \"10.0.0.0/8\""), "allowed_peers");
        assertRefused(withExtra("\"num_threads\": 0"), "num_threads");
        assertRefused("[1]", "object");
    }

    @Test
    void factorsThatDescribeTheMemoryCannotBeReplaced() {
        CompatibilityFactors factors = CompatibilityFactors.of("m", "torch.float16", 12, 64, 12);
        CompatibilityFactors same =
                factors.with(
                        Map.of(
                                "model", "facebook/opt-125m",
                                "vllm_version", "0.33.0",
                                "nixl_connector_version", "15",
                                "dtype", "torch.float16",
                                "attn_backend_name", "FLASH_ATTN",
                                "cache_dtype", "auto",
                                "is_hma_enabled", "true"));
        assertThat(same.hash())
                .isEqualTo("c9b4c7d0cc763c97eacf257b47b6aff44ece9bcac527ed6a27f01de3745fda6e");
        for (String key :
                List.of("model", "vllm_version", "dtype", "attn_backend_name", "cache_dtype")) {
            assertThat(same.with(Map.of(key, "x")).hash()).as(key).isNotEqualTo(same.hash());
        }
        assertThat(same.with(Map.of("nixl_connector_version", "14")).hash())
                .isNotEqualTo(same.hash());
        assertThat(same.with(Map.of("is_hma_enabled", "false")).hash()).isNotEqualTo(same.hash());
        for (Map<String, String> bad :
                List.of(
                        Map.of("num_kv_heads", "1"),
                        Map.of("head_size", "1"),
                        Map.of("vllm", "1"),
                        Map.of("nixl_connector_version", "x"),
                        Map.of("is_hma_enabled", "yes"))) {
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(() -> factors.with(bad))
                    .withMessageContaining(bad.keySet().iterator().next());
        }
    }

    private static String withExtra(String extra) {
        return START + "\"kv_producer\", \"kv_connector_extra_config\": {" + extra + "}}";
    }

    private static void assertRefused(String json, String... parts) {
        assertThatExceptionOfType(ConnectorException.class)
                .as(json)
                .isThrownBy(() -> parse(json))
                .satisfies(e -> assertThat(e.getMessage()).contains(parts));
    }

    private static KvTransferConfig parse(String json) {
        try {
            return KvTransferConfig.parse(new ObjectMapper().readTree(json));
        } catch (JsonProcessingException e) {
            throw new AssertionError(e);
        }
    }
}
