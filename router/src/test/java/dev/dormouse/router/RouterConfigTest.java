package dev.dormouse.router;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RouterConfigTest {
    @Test
    void defaultsAreTheDocumentedOnes() {
        assertThat(engines(RouterConfig.builder()).build())
                .isEqualTo(
                        new RouterConfig(
                                "127.0.0.1",
                                8000,
                                List.of(URI.create("http://p:1")),
                                List.of(URI.create("http://d:2/base")),
                                Duration.ofSeconds(5),
                                Duration.ofMinutes(10),
                                Duration.ofMinutes(10),
                                Duration.ofMinutes(1),
                                Duration.ofSeconds(1),
                                16777216,
                                1024,
                                false));
    }

    @Test
    void everySettingIsTaken() {
        assertThat(
                        engines(RouterConfig.builder())
                                .host("::1")
                                .port(7)
                                .connectTimeout(Duration.ofNanos(1))
                                .prefillTimeout(Duration.ofNanos(2))
                                .decodeTimeout(Duration.ofNanos(3))
                                .clientTimeout(Duration.ofNanos(4))
                                .healthInterval(Duration.ofNanos(5))
                                .maxBodyBytes(6)
                                .maxRequestsInFlight(8)
                                .forwardLastTurn(true)
                                .build())
                .isEqualTo(
                        new RouterConfig(
                                "::1",
                                7,
                                List.of(URI.create("http://p:1")),
                                List.of(URI.create("http://d:2/base")),
                                Duration.ofNanos(1),
                                Duration.ofNanos(2),
                                Duration.ofNanos(3),
                                Duration.ofNanos(4),
                                Duration.ofNanos(5),
                                6,
                                8,
                                true));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "p:1",
                "ftp://p:1",
                "http:///x",
                "http://p?q=1",
                "http://p#f",
                "http://u@p",
                "/x"
            })
    void engineUrlMustBeABaseUrl(String url) {
        assertThatThrownBy(() -> RouterConfig.builder().prefillEngine(URI.create(url)).build())
                .isInstanceOf(RouterException.class)
                .hasMessageContaining(url)
                .hasMessageContaining("prefill");
    }

    @Test
    void badValuesAreNamed() {
        assertRefused("no prefill engine", _ -> RouterConfig.builder());
        assertRefused(
                "no decode engine",
                _ -> RouterConfig.builder().prefillEngine(URI.create("http://p")));
        assertRefused("port -1", b -> b.port(-1));
        assertRefused("port 65536", b -> b.port(65536));
        assertRefused("connect timeout PT0S", b -> b.connectTimeout(Duration.ZERO));
        assertRefused("prefill timeout PT-1S", b -> b.prefillTimeout(Duration.ofSeconds(-1)));
        assertRefused("decode timeout PT0S", b -> b.decodeTimeout(Duration.ZERO));
        assertRefused("client timeout PT0S", b -> b.clientTimeout(Duration.ZERO));
        assertRefused("health interval PT0S", b -> b.healthInterval(Duration.ZERO));
        assertRefused("body limit in bytes 0", b -> b.maxBodyBytes(0));
        assertRefused("body limit 1073741825", b -> b.maxBodyBytes((1 << 30) + 1));
        assertRefused("requests in flight 0", b -> b.maxRequestsInFlight(0));
    }

    private static RouterConfig.Builder engines(RouterConfig.Builder builder) {
        return builder.prefillEngine(URI.create("http://p:1/"))
                .decodeEngine(URI.create("http://d:2/base/"));
    }

    private static void assertRefused(String message, UnaryOperator<RouterConfig.Builder> change) {
        RouterConfig.Builder builder = change.apply(engines(RouterConfig.builder()));
        assertThatThrownBy(builder::build)
                .isInstanceOf(RouterException.class)
                .hasMessageContaining(message);
    }
}
