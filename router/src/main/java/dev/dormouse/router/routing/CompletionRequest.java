package dev.dormouse.router.routing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import java.util.Optional;

/**
 * The body of a completion or chat request, and the bodies of the two legs made from it.
 *
 * <p>A client's own {@code kv_transfer_params} never reaches an engine, since it would let a client
 * make an engine read memory of its choice; unless the router is told to trust its clients. Then
 * those that a decode engine gave for the next turn go to the prefill engine.
 */
public final class CompletionRequest {
    private static final String KV_PARAMS = "kv_transfer_params";

    /**
     * What contradicts an answer of one token, would end it early, or would only be reported of a
     * token that nobody sees. A stop condition on the first token would end the prompt as
     * "stopped", for which an engine hands nothing over. What may be part of the prompt stays:
     * tools, and also {@code tool_choice} and {@code response_format}, which some templates write.
     */
    private static final List<String> REMOVED_FOR_PREFILL =
            List.of(
                    "stream_options",
                    "min_tokens",
                    "min_completion_tokens",
                    "stop",
                    "stop_token_ids",
                    "include_stop_str_in_output",
                    "echo",
                    "logprobs",
                    "top_logprobs",
                    "return_token_ids");

    private final ObjectNode body;
    private final ObjectNode lastTurn;

    private CompletionRequest(ObjectNode body, ObjectNode lastTurn) {
        this.body = body;
        this.lastTurn = lastTurn;
    }

    /**
     * Reads a body.
     *
     * @param forwardLastTurn whether the client may say where its last turn's KV is
     * @throws IOException if it is not a JSON object; the message is fit for the client
     */
    public static CompletionRequest parse(byte[] bytes, boolean forwardLastTurn)
            throws IOException {
        JsonNode json;
        try {
            json = Json.read(bytes);
        } catch (IOException e) {
            throw new IOException("request body is " + e.getMessage(), e);
        }
        if (!(json instanceof ObjectNode object)) {
            throw new IOException("request body must be a JSON object");
        }
        JsonNode params = object.remove(KV_PARAMS);
        boolean forward = forwardLastTurn && params instanceof ObjectNode && isOfDecoder(params);
        return new CompletionRequest(
                object, forward ? (ObjectNode) params : JsonNodeFactory.instance.objectNode());
    }

    /** What a prefill engine returned was for one decode engine only. */
    private static boolean isOfDecoder(JsonNode params) {
        return params.path("do_remote_decode").asBoolean(false)
                && !params.path("do_remote_prefill").asBoolean(false);
    }

    /** Why the prefill leg is left out, if it is. */
    public Optional<Detour> detour() {
        if (moreThanOne(body.path("n")) || moreThanOne(body.path("best_of"))) {
            return Optional.of(Detour.CHOICES);
        }
        if (body.path("use_beam_search").asBoolean(false)) {
            return Optional.of(Detour.BEAM_SEARCH);
        }
        JsonNode prompt = body.path("prompt");
        if (prompt.isArray() && prompt.size() > 1 && !prompt.get(0).isNumber()) {
            return Optional.of(Detour.PROMPTS);
        }
        boolean echoedLogprobs = body.path("echo").asBoolean(false) && body.hasNonNull("logprobs");
        if (body.hasNonNull("prompt_logprobs") || echoedLogprobs) {
            return Optional.of(Detour.PROMPT_LOGPROBS);
        }
        // What fits depends on the engine's length and on max_tokens: two engines would cut
        // differently.
        if (body.path("truncate_prompt_tokens").asInt(0) == -1) {
            return Optional.of(Detour.TRUNCATION);
        }
        return Optional.empty();
    }

    /** The body for the prefill engine: one token, not streamed, to be decoded elsewhere. */
    ObjectNode prefillBody() {
        ObjectNode prefill = body.deepCopy();
        prefill.remove(REMOVED_FOR_PREFILL);
        prefill.put("stream", false);
        // An end token would end the prompt as "stopped", too.
        prefill.put("ignore_eos", true);
        prefill.put("max_tokens", 1);
        if (prefill.has("max_completion_tokens")) {
            prefill.put("max_completion_tokens", 1);
        }
        ObjectNode params = prefill.putObject(KV_PARAMS);
        params.put("do_remote_decode", true);
        params.put("do_remote_prefill", false);
        params.putNull("remote_engine_id");
        params.putNull("remote_block_ids");
        params.putNull("remote_host");
        params.putNull("remote_port");
        params.setAll(lastTurn);
        return prefill;
    }

    /** The client's body with the hand-over {@code params}, whatever they hold. */
    ObjectNode decodeBody(JsonNode params) {
        ObjectNode decode = body.deepCopy();
        decode.set(KV_PARAMS, params);
        return decode;
    }

    /** The client's body without a hand-over: the engine computes the prompt itself. */
    ObjectNode plainBody() {
        return body.deepCopy();
    }

    private static boolean moreThanOne(JsonNode count) {
        return count.isNumber() && count.asDouble() > 1;
    }
}
