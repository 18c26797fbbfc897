package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorException;
import dev.dormouse.connector.TransportChoice;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/** {@code --kv-transfer-config} beside the options of their own. */
final class KvSettingsTest {
    private static final CompatibilityFactors FACTORS =
            CompatibilityFactors.of("model", "torch.float16", 2, 16, 2);
    private static final String JSON =
            """
            --kv-transfer-config={"kv_connector": "NixlConnector", "kv_role": "kv_consumer",
              "engine_id": "from json", "kv_load_failure_policy": "recompute",
              "kv_connector_extra_config": {"kv_lease_duration": 12, "num_threads": 3,
                "allowed_peers": ["10.0.0.0/8"], "max_peer_blocks": 77,
                "compat": {"model": "m2", "dtype": "torch.bfloat16"}}}
            """;

    @Test
    void withoutAnythingTheEngineWorksAloneWithTheDefaults() {
        KvSettings settings = parse();
        ConnectorConfig config = settings.connector(FACTORS, 16).build();
        assertThat(settings.role()).isNull();
        assertThat(settings.recomputesFailedLoads()).isFalse();
        assertThat(settings.backendParameters()).isEmpty();
        assertThat(config.leaseDuration()).isEqualTo(Duration.ofSeconds(30));
        assertThat(config.factors()).isEqualTo(FACTORS);
        assertThat(config.peers()).hasToString("peers=any ports=1-65535 maxBlocks=4194304");
    }

    @Test
    void theJsonIsTaken() {
        KvSettings settings = parse(JSON);
        ConnectorConfig config = settings.connector(FACTORS, 16).build();
        assertThat(settings.role()).isEqualTo(ServeOptions.Role.decode);
        assertThat(settings.recomputesFailedLoads()).isTrue();
        assertThat(settings.backendParameters()).isEqualTo(Map.of("num_threads", "3"));
        assertThat(config.engineId()).isEqualTo("from json");
        assertThat(config.leaseDuration()).isEqualTo(Duration.ofSeconds(12));
        assertThat(config.factors().model()).isEqualTo("m2");
        assertThat(config.peers()).asString().contains("10.0.0.0/8", "maxBlocks=77");
    }

    @Test
    void optionsOfTheirOwnWin() {
        KvSettings settings =
                parse(
                        JSON,
                        "--role=prefill",
                        "--engine-id=flag",
                        "--kv-load-failure-policy=fail",
                        "--kv-lease-duration=40",
                        "--kv-compat=model=m3",
                        "--kv-compat=vllm_version=0.34.0",
                        "--kv-allowed-peers=192.0.2.0/24,*.local",
                        "--kv-allowed-peer-ports=5600-5700",
                        "--kv-max-peer-blocks=88",
                        "--side-channel-port=5600",
                        "--data-parallel-index=2");
        ConnectorConfig config = settings.connector(FACTORS, 16).build();
        assertThat(settings.role()).isEqualTo(ServeOptions.Role.prefill);
        assertThat(settings.recomputesFailedLoads()).isFalse();
        assertThat(config.engineId()).isEqualTo("flag");
        assertThat(config.leaseDuration()).isEqualTo(Duration.ofSeconds(40));
        assertThat(config.factors().model()).isEqualTo("m3");
        assertThat(config.factors().vllmVersion()).isEqualTo("0.34.0");
        assertThat(config.factors().dtype()).as("from the JSON").isEqualTo("torch.bfloat16");
        assertThat(config.sideChannelPort()).isEqualTo(5602);
        assertThat(config.peers())
                .hasToString("peers=[192.0.2.0/24, *.local] ports=5600-5700 maxBlocks=88");
    }

    @Test
    void kvTakesTheNearestWayUnlessTheJsonOrTheOptionSaysAnother() {
        String nixl =
                """
                --kv-transfer-config={"kv_connector": "NixlConnector", "kv_role": "kv_consumer",
                  "kv_connector_extra_config": {"kv_transport": "nixl"}}
                """;
        assertThat(parse().transport()).isEqualTo(TransportChoice.AUTO);
        assertThat(parse(nixl).transport()).isEqualTo(TransportChoice.NIXL);
        assertThat(parse(nixl, "--kv-transport=local").transport())
                .isEqualTo(TransportChoice.LOCAL);
        assertThatThrownBy(() -> parse(nixl.replace("\"nixl\"", "\"rdma\"")))
                .hasMessageContaining("kv_transport")
                .hasMessageContaining("auto, nixl or local");
    }

    @Test
    void eachOfSeveralConnectorsHasItsOwnModeAndPort() {
        List<KvSettings> connectors =
                parse(
                                """
                                --kv-transfer-config={"kv_connector": "MultiConnector",
                                  "kv_role": "kv_consumer", "kv_connector_extra_config":
                                    {"connectors": [{"kv_connector": "NixlConnector"},
                                                    {"kv_connector": "NixlPushConnector"}]}}
                                """,
                                "--side-channel-port=7000")
                        .connectors();
        assertThat(connectors).extracting(KvSettings::isPush).containsExactly(false, true);
        ConnectorConfig pull = connectors.get(0).connector(FACTORS, 16).build();
        ConnectorConfig push = connectors.get(1).connector(FACTORS, 16).build();
        assertThat(pull.sideChannelPort()).isEqualTo(7_000);
        assertThat(push.sideChannelPort()).isEqualTo(7_001);
        assertThat(pull.factors().transferMode()).isEqualTo("pull");
        assertThat(push.factors().transferMode()).isEqualTo("push");
        assertThat(push.engineId()).isNotEqualTo(pull.engineId());
    }

    @Test
    void noRoleMakesSeveralConnectorsHoldPrompts() {
        String several =
                "--kv-transfer-config={\"kv_connector\": \"MultiConnector\", \"kv_role\":"
                        + " \"kv_consumer\", \"kv_connector_extra_config\": {\"connectors\":"
                        + " [{\"kv_connector\": \"NixlConnector\"}%s]}}";
        String two = several.formatted(", {\"kv_connector\": \"NixlPushConnector\"}");
        for (String role : List.of("prefill", "both")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> parse(two, "--role=" + role))
                    .withMessageContaining("--role is " + role)
                    .withMessageContaining("2 connectors");
            assertThat(parse(several.formatted(""), "--role=" + role).connectors()).hasSize(1);
        }
        assertThat(parse(two, "--role=decode").connectors()).hasSize(2);
    }

    @Test
    void whatIsWrongIsNamedWithTheOption() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse("--kv-transfer-config={\"kv_role\""))
                .withMessageContaining("--kv-transfer-config");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse("--kv-transfer-config={} x"))
                .withMessageContaining("--kv-transfer-config");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse("--kv-transfer-config={\"kv_rolle\": 1}"))
                .withMessageContaining("--kv-transfer-config")
                .withMessageContaining("kv_rolle");
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> parse("--kv-compat=head_size=1").connector(FACTORS, 16))
                .withMessageContaining("head_size");
    }

    private static KvSettings parse(String... arguments) {
        ServeOptions options = new ServeOptions();
        CommandSpec spec = CommandSpec.create();
        spec.addMixin("options", CommandSpec.forAnnotatedObject(options));
        new CommandLine(spec).parseArgs(arguments);
        return KvSettings.of(options);
    }
}
