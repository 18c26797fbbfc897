package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Conversations over engines and a router as processes, where the prefill engine reads what was
 * said before from the decode engine. Whatever it can or cannot read, the text must be an engine's
 * alone.
 */
class NextTurnEndToEndTest {
    private static final int TOKENS = 10;
    private static final String HELD = "dormouse:num_requests_held_for_remote";
    private static final String FIRST = "Name three colours of the rainbow, please.";
    private static final String SECOND = "And what is the capital of France?";

    @TempDir private static Path logs;
    private static LiveFleet fleet;

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        Natives.model();
        fleet =
                new LiveFleet(
                        logs,
                        List.of("--forward-last-turn"),
                        List.of(
                                "--kv-transfer-config",
                                """
                                {"kv_connector": "NixlConnector", "kv_role": "kv_both",
                                 "kv_connector_extra_config": {"bidirectional_kv_xfer": true,
                                   "decoder_kv_blocks_ttl": 120, "kv_recompute_threshold": 1}}\
                                """));
    }

    @AfterAll
    static void stop() {
        if (fleet != null) {
            fleet.close();
        }
    }

    /** What one turn came to, and what the prefill engine did for it. */
    private record Turn(JsonNode answer, Counters spent, double remoteTokens) {
        int promptTokens() {
            return answer.path("usage").path("prompt_tokens").asInt();
        }

        /** Tokens whose KV the decode engine holds: the last one of an output has none. */
        int heldTokens() {
            return promptTokens() + answer.path("usage").path("completion_tokens").asInt() - 1;
        }

        int cachedTokens() {
            return answer.path("usage").path("prompt_tokens_details").path("cached_tokens").asInt();
        }
    }

    /** A client that sends back what it was given. */
    private static final class Conversation {
        private final ArrayNode messages = Json.MAPPER.createArrayNode();
        private @Nullable JsonNode lastTurn;

        Turn say(String message) {
            return say(message, false);
        }

        /** Says something, and requires the answer of an engine alone. */
        Turn say(String message, boolean streamed) {
            messages.addObject().put("role", "user").put("content", message);
            String expected = text(ask(fleet.decode(), false, null));
            Counters before = Counters.of(fleet.prefill());
            Counters ofDecode = Counters.of(fleet.decode());
            double remote = remoteTokens();
            long taken = LiveFleet.firstTokens(fleet.decode());
            JsonNode answer = ask(fleet.router(), streamed, lastTurn);
            assertThat(text(answer)).isNotBlank().isEqualTo(expected);
            messages.addObject().put("role", "assistant").put("content", text(answer));
            lastTurn = answer.path("kv_transfer_params");
            assertThat(lastTurn.path("do_remote_decode").asBoolean()).isTrue();
            Counters spent = Counters.of(fleet.decode()).minus(ofDecode);
            assertThat(spent.computedPromptTokens()).as("by the decode engine").isZero();
            assertThat(spent.reads()).as("by the decode engine").isEqualTo(1);
            assertThat(LiveFleet.firstTokens(fleet.decode()) - taken).isEqualTo(1);
            return new Turn(
                    answer, Counters.of(fleet.prefill()).minus(before), remoteTokens() - remote);
        }

        private JsonNode ask(Endpoint endpoint, boolean streamed, @Nullable JsonNode params) {
            ObjectNode body = Json.MAPPER.createObjectNode();
            body.set("messages", messages);
            body.put("max_tokens", TOKENS).put("temperature", 0);
            if (params != null) {
                body.set("kv_transfer_params", params);
            }
            if (streamed) {
                body.put("stream", true).putObject("stream_options").put("include_usage", true);
            }
            return streamed
                    ? united(endpoint.text("/v1/chat/completions", body))
                    : endpoint.post("/v1/chat/completions", body);
        }

        /** A stream's events as the answer that they make up. */
        private static JsonNode united(String events) {
            ObjectNode answer = Json.MAPPER.createObjectNode();
            StringBuilder text = new StringBuilder();
            for (String line : events.lines().toList()) {
                if (!line.startsWith("data: {")) {
                    continue;
                }
                JsonNode event = Json.parse(line.substring("data: ".length()));
                text.append(event.path("choices").path(0).path("delta").path("content").asText());
                for (String key : List.of("usage", "kv_transfer_params")) {
                    if (event.hasNonNull(key)) {
                        answer.set(key, event.get(key));
                    }
                }
            }
            answer.putArray("choices")
                    .addObject()
                    .putObject("message")
                    .put("content", text.toString());
            return answer;
        }
    }

    private static String text(JsonNode answer) {
        return answer.path("choices").path(0).path("message").path("content").asText();
    }

    private static double remoteTokens() {
        return LiveFleet.metric(fleet.prefill(), "dormouse:prompt_tokens_remote_total");
    }

    /** The prefill engine read what was held of the last turn, and computed what was new. */
    private static void requireRead(Turn turn, Turn last) {
        assertThat(turn.spent().reads()).as("by the prefill engine").isEqualTo(1);
        assertThat(turn.spent().failedTransfers()).isZero();
        assertThat(turn.remoteTokens()).isPositive();
        assertThat(turn.spent().computedPromptTokens())
                .isEqualTo(turn.promptTokens() - last.heldTokens());
        assertThat(turn.cachedTokens()).isEqualTo(last.heldTokens());
    }

    private static void requireComputed(Turn turn, Turn last) {
        assertThat(turn.spent().reads()).as("by the prefill engine").isZero();
        assertThat(turn.remoteTokens()).isZero();
        assertThat(turn.spent().computedPromptTokens())
                .isGreaterThan(turn.promptTokens() - last.heldTokens());
    }

    private static void awaitHeld(Endpoint engine, int requests) {
        Await.until(
                requests + " requests are held",
                LiveFleet.LIMIT,
                () -> LiveFleet.metric(engine, HELD) == requests,
                () -> engine.get("/metrics"));
    }

    /** Nothing of one test is held in the next. */
    private static void forgetHolds() {
        fleet.decodeAdmin().post("/sleep?level=1");
        fleet.decodeAdmin().post("/wake_up");
        awaitHeld(fleet.decode(), 0);
        awaitHeld(fleet.prefill(), 0);
    }

    @Test
    void whatWasSaidIsReadFromTheDecodeEngineTurnByTurnAndAlsoFromAStream() {
        forgetHolds();
        Conversation chat = new Conversation();
        Turn first = chat.say(FIRST);
        assertThat(first.spent().reads()).as("there is nothing to read yet").isZero();
        Turn second = chat.say(SECOND, true);
        requireRead(second, first);
        requireRead(chat.say("Thank you. Who wrote Hamlet?"), second);
        awaitHeld(fleet.prefill(), 0);
        awaitHeld(fleet.decode(), 1); // the last turn, for the one that may come
        forgetHolds();
    }

    @Test
    void aPrefillEngineThatSleptBetweenTurnsReadsAllOfItWithOneHandshake() {
        Conversation chat = new Conversation();
        Turn first = chat.say("How many legs does a spider have?");
        fleet.prefillAdmin().post("/sleep?level=1");
        fleet.prefillAdmin().post("/wake_up");
        Turn second = chat.say(SECOND);
        requireRead(second, first);
        assertThat(second.remoteTokens())
                .as("its own cache went with the sleep")
                .isEqualTo(first.heldTokens());
        assertThat(second.spent().handshakes()).isEqualTo(1);
        forgetHolds();
    }

    @Test
    void aTurnWhoseDecodeEngineSleptIsComputedAndTheNextOneReadAgain() {
        Conversation chat = new Conversation();
        Turn first = chat.say("What do cats like to eat?");
        fleet.decodeAdmin().post("/sleep?level=2");
        assertThat(LiveFleet.metric(fleet.decode(), HELD)).isZero();
        fleet.decodeAdmin().post("/wake_up");
        Turn second = chat.say(SECOND);
        requireComputed(second, first);
        requireRead(chat.say("Which one is the largest?"), second);
        forgetHolds();
    }

    @Test
    void aTurnWhoseDecodeEngineWasKilledIsComputedAndTheNextOneReadFromTheNewOne() {
        Conversation chat = new Conversation();
        Turn first = chat.say("What is the colour of snow?");
        fleet.killDecode();
        fleet.restartDecode();
        Turn second = chat.say(SECOND);
        requireComputed(second, first);
        requireRead(chat.say("What is it famous for?"), second);
        forgetHolds();
    }
}
