package dev.dormouse.cli.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.serve.FaultyEngine.Answer;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.testkit.Await;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An engine in which steps fail, beside one that never sleeps, with which it exchanges prompts in
 * both directions and which knows the right tokens.
 */
final class FaultySubject implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Only bounds a failing test. */
    private static final Duration LIMIT = Duration.ofMinutes(1);

    private static final int TOKENS = 6;
    private static final String REPEATED = "the dormouse sleeps in the winter and wakes in spring";

    final FaultyEngine engine;
    private final FaultyEngine control;
    private final int ranks;

    private int prompts;

    FaultySubject(Path folder, FaultyEngine control, int ranks) {
        this.control = control;
        this.ranks = ranks;
        engine = new FaultyEngine(folder, "subject" + ranks, ranks, true);
    }

    /** A completion's body. */
    static ObjectNode request(String prompt, int tokens, @Nullable JsonNode params) {
        ObjectNode body = JSON.createObjectNode();
        body.put("prompt", prompt).put("max_tokens", tokens).put("temperature", 0);
        body.put("ignore_eos", true).put("return_token_ids", true);
        if (params != null) {
            body.set("kv_transfer_params", params);
        }
        return body;
    }

    /** A prompt that nobody has asked for yet. */
    private String freshPrompt() {
        return "once upon a time there were " + prompts++ + " dormice of " + ranks + " families";
    }

    private static List<Integer> complete(
            FaultyEngine by, String prompt, @Nullable JsonNode params) {
        Answer answer = by.post("/v1/completions", request(prompt, TOKENS, params));
        assertThat(answer.status()).as("%s", answer.body()).isEqualTo(200);
        List<Integer> tokens = tokens(answer);
        assertThat(tokens).hasSize(TOKENS);
        return tokens;
    }

    private static List<Integer> tokens(Answer answer) {
        List<Integer> tokens = new ArrayList<>();
        answer.body().at("/choices/0/token_ids").forEach(token -> tokens.add(token.intValue()));
        return tokens;
    }

    /** While others put it to sleep: the right tokens, the first of them, or a refusal. */
    void requireRightOrRefused() {
        Answer answer = engine.post("/v1/completions", request(REPEATED, TOKENS, null));
        if (answer.status() != 200) {
            assertThat(answer.status()).as("%s", answer.body()).isEqualTo(503);
            return;
        }
        List<Integer> tokens = tokens(answer);
        String reason = answer.body().at("/choices/0/finish_reason").asText();
        assertThat(tokens).hasSize(reason.equals("abort") ? tokens.size() : TOKENS);
        // One that is aborted before its first token has none.
        assertThat(tokens).isEqualTo(complete(control, REPEATED, null).subList(0, tokens.size()));
    }

    /** The prefill leg: the engine holds the prompt from now on. */
    private static JsonNode prefill(FaultyEngine by, String prompt) {
        JsonNode ask = JSON.createObjectNode().put("do_remote_decode", true);
        Answer answer = by.post("/v1/completions", request(prompt, 1, ask));
        assertThat(answer.status()).as("%s", answer.body()).isEqualTo(200);
        return answer.body().path("kv_transfer_params");
    }

    /** A prompt that the engine holds for a reader. */
    record HandedOver(String prompt, JsonNode params) {}

    HandedOver holdPrompt() {
        String prompt = freshPrompt();
        return new HandedOver(prompt, prefill(engine, prompt));
    }

    /** The control reads what the engine holds. */
    void read(HandedOver handedOver) {
        double before = control.metric("dormouse:prompt_tokens_remote_total", "");
        assertThat(complete(control, handedOver.prompt, handedOver.params))
                .isEqualTo(complete(control, handedOver.prompt, null));
        assertThat(control.metric("dormouse:prompt_tokens_remote_total", ""))
                .as("read by the control")
                .isGreaterThan(before);
    }

    /**
     * It serves: a prompt that it has seen before its sleep, one whose KV it reads from the
     * control, and one whose KV the control reads from it; each gets the control's tokens. Nothing
     * is held afterwards that an engine awake does not need.
     */
    void requireServing() {
        assertThat(engine.get("/health").status()).isEqualTo(200);
        assertThat(engine.get("/ready").status()).isEqualTo(200);
        requireState("awake", false);
        assertThat(complete(engine, REPEATED, null)).isEqualTo(complete(control, REPEATED, null));

        String read = freshPrompt();
        double before = engine.metric("dormouse:prompt_tokens_remote_total", "");
        assertThat(complete(engine, read, prefill(control, read)))
                .isEqualTo(complete(control, read, null));
        assertThat(engine.metric("dormouse:prompt_tokens_remote_total", ""))
                .as("read by the engine")
                .isGreaterThan(before);
        read(holdPrompt());

        Await.until(
                "nothing is held for a reader",
                LIMIT,
                () -> engine.metric("dormouse:num_requests_held_for_remote", "") == 0,
                () -> engine.metric("dormouse:kv_blocks_held_for_remote", ""));
        assertThat(engine.metric("vllm:kv_cache_usage_perc", "")).as("blocks in use").isZero();
        assertThat(engine.transports).allMatch(transport -> transport.registrations() == 1);
        requireMappings(true);
    }

    /** It sleeps at level 2: truthful, refusing, and without anything of its memory. */
    void requireAsleep() {
        assertThat(engine.get("/health").status()).isEqualTo(200);
        assertThat(engine.get("/ready").status()).isEqualTo(503);
        requireState("asleep", true);
        assertThat(engine.get("/is_sleeping").body().path("asleep")).hasSize(2);
        requireRefused();
        for (FaultyTransport transport : engine.transports) {
            assertThat(transport.registrations()).isZero();
            assertThat(transport.lists()).isZero();
            assertThat(transport.peers()).isZero();
        }
        requireMappings(false);
    }

    /** A completion is refused at once, with a reason. */
    void requireRefused() {
        Answer refused = engine.post("/v1/completions", request(REPEATED, TOKENS, null));
        assertThat(refused.status()).as("%s", refused.body()).isEqualTo(503);
        assertThat(refused.body().at("/error/message").asText()).contains("the engine ");
    }

    /** Whether the next test can use it. */
    boolean isAwake() {
        return engine.get("/ready").status() == 200;
    }

    void requireState(String phase, boolean sleeping) {
        JsonNode state = engine.get("/is_sleeping").body();
        assertThat(state.path("phase").asText()).isEqualTo(phase);
        assertThat(state.path("is_sleeping").asBoolean()).isEqualTo(sleeping);
    }

    private void requireMappings(boolean mapped) {
        for (FaultyMemory memory : engine.memories) {
            for (MemoryTag tag : MemoryTag.values()) {
                assertThat(memory.isMapped(tag)).as("%s has pages", tag).isEqualTo(mapped);
            }
        }
    }

    /** The call works, and has changed something. */
    void made(String path) {
        Answer answer = engine.control(path);
        assertThat(answer.status()).as("%s", answer.body()).isEqualTo(200);
        assertThat(answer.body().path("changed").asBoolean()).as("%s", answer.body()).isTrue();
    }

    /** The call fails, says why, and counts as one failure of its operation and of no other. */
    void fails(String path, String operation, String why) {
        double of = failures("operation=\"" + operation + "\"");
        double all = failures("");
        double durations = engine.metric("vllm:sleep_mode_operation_duration_seconds_count", "");
        Answer answer = engine.control(path);
        assertThat(answer.status()).as("%s", answer.body()).isEqualTo(503);
        assertThat(answer.body().at("/error/code").asText()).isEqualTo("engine_unavailable");
        assertThat(answer.body().at("/error/message").asText()).contains(why);
        assertThat(failures("operation=\"" + operation + "\"")).isEqualTo(of + 1);
        assertThat(failures("")).isEqualTo(all + 1);
        assertThat(engine.metric("vllm:sleep_mode_operations_in_flight", "")).isZero();
        assertThat(engine.metric("vllm:sleep_mode_operation_duration_seconds_count", ""))
                .as("durations of what changed something")
                .isEqualTo(durations);
    }

    double failures(String label) {
        return engine.metric("dormouse:transition_failures_total", label);
    }

    double epoch() {
        return engine.metric("dormouse:registration_epoch", "");
    }

    /** Ends the engine, of which nothing stays behind. */
    @Override
    public void close() {
        engine.close();
        requireMappings(false);
    }
}
