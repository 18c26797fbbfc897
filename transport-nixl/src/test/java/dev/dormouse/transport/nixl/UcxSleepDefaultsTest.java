package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class UcxSleepDefaultsTest {
    @Test
    void switchesCacheAndIpcOff() {
        assertThat(UcxSleepDefaults.applied(Map.of("num_threads", "4"), Map.of()))
                .isEqualTo(
                        Map.of(
                                "num_threads",
                                "4",
                                "engine_config",
                                "RCACHE_ENABLE=n,TLS=^cuda_ipc"));
    }

    @Test
    void aSettingOfTheEnvironmentWins() {
        assertThat(UcxSleepDefaults.added(Map.of(), Map.of("UCX_TLS", "tcp")))
                .isEqualTo(Map.of("RCACHE_ENABLE", "n"));
        assertThat(
                        UcxSleepDefaults.applied(
                                Map.of(), Map.of("UCX_TLS", "tcp", "UCX_RCACHE_ENABLE", "y")))
                .isEmpty();
    }

    @Test
    void aSettingOfTheBackendWinsAndIsKept() {
        Map<String, String> parameters = Map.of("engine_config", "TLS=tcp,ZCOPY_THRESH=0");
        assertThat(UcxSleepDefaults.added(parameters, Map.of()))
                .isEqualTo(Map.of("RCACHE_ENABLE", "n"));
        assertThat(UcxSleepDefaults.applied(parameters, Map.of()))
                .isEqualTo(Map.of("engine_config", "TLS=tcp,ZCOPY_THRESH=0,RCACHE_ENABLE=n"));
    }
}
