package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.http.HttpResponse;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who may put an engine to sleep. */
class AdminListenerTest extends ServerFixture {
    private static final List<String> CHANGES =
            List.of(
                    "/sleep",
                    "/wake_up",
                    "/release_kv_cache_memory",
                    "/pause",
                    "/resume",
                    "/reset_prefix_cache");

    private @Nullable EngineServer other;

    @AfterEach
    void stopOther() {
        if (other != null) {
            other.close();
        }
    }

    private EngineServer serve(AdminConfig admin) {
        other =
                EngineServer.start(
                        new ServerConfig(
                                "127.0.0.1",
                                0,
                                10_000,
                                10,
                                ServedLegs.BOTH,
                                false,
                                admin,
                                List.of(),
                                "1"),
                        engine,
                        text,
                        Instant::now,
                        System::nanoTime);
        return other;
    }

    @Test
    void thePublicListenerTakesNoChangeAndSaysWhoDoes() {
        for (String path : CHANGES) {
            assertThat(post(404, path, "").path("error").path("message").asText())
                    .contains("POST " + path)
                    .contains("--admin-port");
        }
        assertThat(engine.transitions).isEmpty();
    }

    @Test
    void bothListenersTellTheState() {
        for (int port : List.of(server.port(), server.adminPort())) {
            for (String path :
                    List.of("/is_sleeping", "/is_paused", "/health", "/ready", "/metrics")) {
                assertThat(sendTo(port, "GET", path, "").statusCode()).as(path).isEqualTo(200);
            }
        }
    }

    @Test
    void theAdminListenerServesNoCompletions() {
        assertThat(sendTo(server.adminPort(), "POST", "/v1/completions", "{}").statusCode())
                .isEqualTo(404);
    }

    @Test
    void withATokenEveryCallMustCarryIt() {
        int port = serve(new AdminConfig("127.0.0.1", 0, "sesame", false)).adminPort();
        for (String wrong : List.of("Bearer sesam", "Bearer sesamee", "Bearer x", "Basic sesame")) {
            HttpResponse<String> refused =
                    sendTo(port, "POST", "/sleep", "", "Authorization", wrong);
            assertThat(refused.statusCode()).as(wrong).isEqualTo(401);
            assertThat(refused.headers().firstValue("WWW-Authenticate")).hasValue("Bearer");
        }
        assertThat(sendTo(port, "POST", "/sleep", "").statusCode()).isEqualTo(401);
        assertThat(sendTo(port, "GET", "/metrics", "").statusCode()).isEqualTo(401);
        assertThat(engine.transitions).isEmpty();

        assertThat(
                        sendTo(port, "POST", "/sleep", "", "Authorization", "bearer sesame")
                                .statusCode())
                .isEqualTo(200);
        assertThat(engine.transitions).containsExactly("sleep 1 ABORT");
    }

    @Test
    void inVllmsDevelopmentModeThePublicListenerTakesChangesToo() {
        int port = serve(new AdminConfig("127.0.0.1", 0, null, true)).port();
        assertThat(sendTo(port, "POST", "/sleep", "").statusCode()).isEqualTo(200);
    }

    @Test
    void anAddressThatOthersCanReachNeedsAToken() {
        assertThatThrownBy(() -> new AdminConfig("0.0.0.0", 0, null, false))
                .hasMessageContaining("--admin-host is 0.0.0.0")
                .hasMessageContaining("DORMOUSE_ADMIN_TOKEN");
        assertThatThrownBy(() -> new AdminConfig("127.0.0.1", 0, " ", false))
                .hasMessageContaining("token is empty");
        assertThat(new AdminConfig("0.0.0.0", 0, "sesame", false).token()).isEqualTo("sesame");
    }

    @Test
    void theDefaultPortIsTenThousandFromThePublicOne() {
        assertThat(AdminConfig.defaultPort(0)).isZero();
        assertThat(AdminConfig.defaultPort(8000)).isEqualTo(18000);
        assertThat(AdminConfig.defaultPort(55535)).isEqualTo(65535);
        assertThat(AdminConfig.defaultPort(55536)).isEqualTo(45536);
    }

    @Test
    void anAdminPortInUseIsNamedAndLeavesNothingBound() {
        AdminConfig taken = new AdminConfig("127.0.0.1", server.adminPort(), null, false);
        assertThatThrownBy(() -> serve(taken))
                .hasMessageContaining(Integer.toString(server.adminPort()))
                .hasMessageContaining("--admin-port");
    }
}
