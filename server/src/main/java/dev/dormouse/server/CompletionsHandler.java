package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** {@code POST /v1/completions}: from text or token ids. */
final class CompletionsHandler implements JobSource {
    /** As in OpenAI's API. */
    private static final int DEFAULT_MAX_TOKENS = 16;

    private final Tokenizer tokenizer;
    private final JobReader reader;
    private final AnswerFormat format;

    CompletionsHandler(JobReader reader, Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
        this.reader = reader;
        this.format = new TextFormat(tokenizer);
    }

    @Override
    public Job job(RequestBody body, String requestId) {
        if (body.flag("echo", false)) {
            throw ApiException.badRequest("echo", "echo is not supported; leave it out");
        }
        @Nullable Long given = body.integer("max_tokens");
        long maxTokens = given == null ? DEFAULT_MAX_TOKENS : given;
        @Nullable Long logprobs = body.integer("logprobs");
        String id = "cmpl-" + requestId;
        return reader.read(
                body,
                format,
                id,
                sequence -> id + "-" + sequence, // as vLLM's, whose push connector goes by it
                prompts(body),
                prompt -> reader.roomOr(maxTokens, "max_tokens", prompt),
                logprobs == null
                        ? null
                        : Math.toIntExact(Math.clamp(logprobs, -1, Integer.MAX_VALUE)));
    }

    private List<List<Integer>> prompts(RequestBody body) {
        JsonNode prompt = body.node("prompt");
        if (prompt == null) {
            throw ApiException.badRequest("prompt", "prompt is missing");
        }
        boolean special = body.flag("add_special_tokens", true);
        if (prompt.isTextual()) {
            var _ = reader.choices(body, 1);
            return List.of(encode(prompt.textValue(), special));
        }
        RequestBody.requireArray(
                "prompt", prompt, "a string, a list of token ids, or a list of either");
        if (prompt.isEmpty()) {
            throw ApiException.badRequest(
                    "prompt", "prompt is an empty list, but must have at least one element");
        }
        if (prompt.get(0).isIntegralNumber()) {
            var _ = reader.choices(body, 1);
            return List.of(reader.prompt("prompt", prompt));
        }
        var _ = reader.choices(body, prompt.size());
        List<List<Integer>> prompts = new ArrayList<>();
        for (JsonNode element : prompt) {
            prompts.add(
                    element.isTextual()
                            ? encode(element.textValue(), special)
                            : reader.prompt("prompt", element));
        }
        return prompts;
    }

    private List<Integer> encode(String text, boolean special) {
        return reader.prompt("prompt", tokenizer.encode(text, special, true));
    }
}
