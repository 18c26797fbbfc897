package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionRefusedException.Reason;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Sleep, wake, pause and health over HTTP. */
class ControlEndpointsTest extends ServerFixture {
    @Test
    void controlTakesParametersFromQueryOrBody() {
        control(200, "/sleep", "");
        control(200, "/sleep?level=2&mode=wait", "");
        JsonNode report = control(200, "/sleep", "{\"level\":0,\"mode\":\"keep\"}");
        control(200, "/sleep?level=1", "{\"level\":\"1\"}");
        control(200, "/wake_up", "");
        control(200, "/wake_up?tags=weights&tags=kv_cache", "");
        control(200, "/wake_up?tags=weights,kv_cache", "");
        control(200, "/wake_up", "{\"tags\":[\"kv_cache\"]}");
        control(200, "/release_kv_cache_memory", "");
        control(200, "/pause?mode=wait&clear_cache=false", "");
        control(200, "/resume", "");
        control(200, "/reset_prefix_cache", "");
        assertThat(engine.transitions)
                .containsExactly(
                        "sleep 1 ABORT",
                        "sleep 2 WAIT",
                        "sleep 0 KEEP",
                        "sleep 1 ABORT",
                        "wake null",
                        "wake [WEIGHTS, KV_CACHE]",
                        "wake [WEIGHTS, KV_CACHE]",
                        "wake [KV_CACHE]",
                        "release",
                        "pause WAIT false",
                        "resume",
                        "reset");
        assertThat(report.path("status").asText()).isEqualTo("sleeping");
        assertThat(report.path("level").asInt()).isZero();
        assertThat(report.path("bytes_released").asLong()).isEqualTo(4096);
        assertThat(report.path("seconds").path("unmap").asDouble()).isEqualTo(0.5);
    }

    @Test
    void theAnswerToASleepTellsTheLevelThatTheEngineIsAt() {
        engine.state =
                new EngineState(Phase.ASLEEP, 2, Set.of(dev.dormouse.engine.WakeTag.WEIGHTS), true);
        assertThat(control(200, "/sleep?level=0", "").path("level").asInt()).isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource({
        "/sleep?level=3, level is `3`",
        "/sleep?level=-1, level is `-1`",
        "/sleep?level=abc, level is `abc`",
        "/sleep?level=1&level=2, level has 2 values",
        "/sleep?mode=hard, mode is `hard`",
        "/wake_up?tags=, tags has ``",
        "/wake_up?tags=brain, tags has `brain`",
        "/pause?clear_cache=maybe, clear_cache is `maybe`"
    })
    void controlRefusesBadParametersAndChangesNothing(String path, String message) {
        assertThat(control(400, path, "").path("error").path("message").asText()).contains(message);
        assertThat(engine.transitions).isEmpty();
    }

    @Test
    void aParameterThatDiffersBetweenQueryAndBodyIsRefused() {
        assertThat(
                        control(400, "/sleep?level=1", "{\"level\":2}")
                                .path("error")
                                .path("message")
                                .asText())
                .contains("[1] in the query but [2] in the body");
        assertThat(engine.transitions).isEmpty();
    }

    @Test
    void refusedTransitionsHaveTheirStatus() {
        for (Reason reason : Reason.values()) {
            engine.refusal = new TransitionRefusedException(reason, "no");
            int status =
                    switch (reason) {
                        case INVALID -> 400;
                        case CONFLICT -> 409;
                        case UNAVAILABLE -> 503;
                    };
            assertThat(control(status, "/sleep", "").path("error").path("message").asText())
                    .isEqualTo("no");
        }
    }

    @Test
    void aSleepingEngineIsAliveButNotReady() {
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(200);
        assertThat(send("GET", "/ready", "").statusCode()).isEqualTo(200);
        engine.state =
                new EngineState(
                        Phase.ASLEEP, 1, Set.of(dev.dormouse.engine.WakeTag.KV_CACHE), true);
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(200);
        assertThat(send("GET", "/ready", "").statusCode()).isEqualTo(503);
        assertThat(json(send("GET", "/is_sleeping", "").body()).path("is_sleeping").asBoolean())
                .isTrue();
        engine.state = new EngineState(Phase.FAILED, 0, Set.of(), true);
        assertThat(send("GET", "/health", "").statusCode()).isEqualTo(503);
    }
}
