package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class NixlAgentConfigTest {
    @Test
    void defaultsIdleCheaply() {
        assertThat(NixlAgentConfig.builder("a").build())
                .isEqualTo(
                        new NixlAgentConfig(
                                "a",
                                true,
                                Duration.ofMillis(1),
                                ThreadSync.NONE,
                                false,
                                16 << 20,
                                1 << 20));
    }

    @Test
    void everySettingIsKept() {
        assertThat(
                        NixlAgentConfig.builder("b")
                                .progressThread(false)
                                .progressDelay(Duration.ofMillis(7))
                                .threadSync(ThreadSync.STRICT)
                                .telemetry(true)
                                .maxMetadataBytes(8)
                                .maxNotificationBytes(9)
                                .build())
                .isEqualTo(
                        new NixlAgentConfig(
                                "b", false, Duration.ofMillis(7), ThreadSync.STRICT, true, 8, 9));
    }

    @Test
    void badValuesAreNamed() {
        for (String name : new String[] {"", " ", "a\0b", "a\nb", "x".repeat(256)}) {
            assertThatThrownBy(() -> NixlAgentConfig.builder(name).build())
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("name");
        }
        for (Duration delay :
                new Duration[] {Duration.ZERO, Duration.ofNanos(999_999), Duration.ofHours(1)}) {
            assertThatThrownBy(() -> NixlAgentConfig.builder("a").progressDelay(delay).build())
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("progressDelay=" + delay);
        }
        assertThatThrownBy(() -> NixlAgentConfig.builder("a").maxMetadataBytes(0).build())
                .hasMessageContaining("maxMetadataBytes=0");
        assertThatThrownBy(() -> NixlAgentConfig.builder("a").maxNotificationBytes(-1).build())
                .hasMessageContaining("maxNotificationBytes=-1");
    }
}
