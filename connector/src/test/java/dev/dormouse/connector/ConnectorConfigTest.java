package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Settings are checked where they are made. */
final class ConnectorConfigTest {
    @Test
    void wildcardsAreNotAdvertised() {
        for (String host : List.of("0.0.0.0", "::")) {
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(() -> Params.config("E").bindHost(host).build())
                    .withMessageContaining("wildcard");
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(() -> Params.config("E").advertisedHost(host).build());
            assertThat(
                            Params.config("E")
                                    .bindHost(host)
                                    .advertisedHost("10.0.0.5")
                                    .build()
                                    .bindHost())
                    .isEqualTo(host);
        }
    }

    @Test
    void settingsOutOfRangeAreRefused() {
        List<Consumer<ConnectorConfig.Builder>> bad =
                List.of(
                        builder -> builder.engineId(" "),
                        builder -> builder.instanceId(""),
                        builder -> builder.tpSize(0),
                        builder -> builder.sideChannelPort(65_536),
                        builder -> builder.advertisedHost("not a host"),
                        builder -> builder.tpSize(3),
                        builder -> builder.advertisedHost("10.0.0.1").bindHost("a b"),
                        builder -> builder.advertisedHost("::ffff:0.0.0.0"),
                        builder -> builder.handshakeTimeout(Duration.ZERO),
                        builder -> builder.handshakeTimeout(Duration.ofSeconds(Long.MAX_VALUE)),
                        builder -> builder.readTimeout(Duration.ofSeconds(-1)),
                        builder -> builder.pushTimeout(Duration.ZERO),
                        builder -> builder.dataParallelIndex(-1),
                        builder -> builder.dataParallelIndex(65_536),
                        builder -> builder.readTimeout(Duration.ofDays(1_000_000)),
                        builder -> builder.engineTtl(Duration.ofNanos(-1)),
                        builder -> builder.engineTtl(Duration.ofSeconds(Long.MAX_VALUE)),
                        builder -> builder.leaseDuration(Duration.ZERO),
                        builder -> builder.leaseDuration(Duration.ofDays(2)));
        for (Consumer<ConnectorConfig.Builder> change : bad) {
            ConnectorConfig.Builder builder = Params.config("E");
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(
                            () -> {
                                change.accept(builder);
                                ConnectorConfig _ = builder.build();
                            });
        }
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> ConnectorConfig.builder(ModelEngine.FACTORS, 0).build())
                .withMessageContaining("blockTokens=0");
    }

    @Test
    void theBoundsOfEachSettingBelongToIt() {
        ConnectorConfig config =
                ConnectorConfig.builder(ModelEngine.FACTORS, 1)
                        .tpSize(1_024)
                        .engineTtl(Duration.ZERO)
                        .leaseDuration(Duration.ofDays(1))
                        .dataParallelIndex(65_535)
                        .sideChannelPort(0)
                        .build();
        assertThat(config.blockTokens()).isEqualTo(1);
        assertThat(config.tpSize()).isEqualTo(1_024);
        assertThat(config.engineTtl()).isZero();
        assertThat(config.leaseDuration()).isEqualTo(Duration.ofDays(1));
    }

    @Test
    void theDefaultsAreThoseOfTheProtocol() {
        ConnectorConfig config = ConnectorConfig.builder(ModelEngine.FACTORS, 16).build();
        assertThat(config.bindHost()).isEqualTo("localhost");
        assertThat(config.advertisedHost()).isEqualTo("localhost");
        assertThat(config.sideChannelPort()).isEqualTo(5600);
        assertThat(config.leaseDuration()).isEqualTo(Duration.ofSeconds(30));
        assertThat(config.leaseExtension()).isEqualTo(Duration.ofSeconds(20));
        assertThat(config.handshakeTimeout()).isEqualTo(Duration.ofSeconds(5));
        assertThat(config.engineTtl()).isEqualTo(Duration.ofHours(1));
        assertThat(config.enforceCompatibility()).isTrue();
        assertThat(config.skipReregistration()).isFalse();
    }

    @Test
    void theDataParallelIndexIsAddedToThePort() {
        assertThat(
                        Params.config("E")
                                .sideChannelPort(5600)
                                .dataParallelIndex(3)
                                .build()
                                .sideChannelPort())
                .isEqualTo(5603);
        assertThat(Params.config("E").dataParallelIndex(3).build().sideChannelPort())
                .as("any free port")
                .isZero();
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(
                        () ->
                                Params.config("E")
                                        .sideChannelPort(65_535)
                                        .dataParallelIndex(1)
                                        .build());
    }

    @Test
    void everyStartIsAnotherInstance() {
        assertThat(ConnectorConfig.builder(ModelEngine.FACTORS, 16).build().instanceId())
                .isNotEqualTo(
                        ConnectorConfig.builder(ModelEngine.FACTORS, 16).build().instanceId());
    }
}
