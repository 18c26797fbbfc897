package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.connector.ConnectorException;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * What the completion endpoints' requests have in common, from body to {@link Job}. Thread-safe.
 */
final class JobReader {
    /** As in OpenAI's API. */
    static final int MAX_LOGPROBS = 20;

    /** Sequences of one request at most. */
    private static final int MAX_CHOICES = 128;

    private final EngineInfo info;
    private final ServedLegs legs;
    private final boolean takesPriorities;
    private final SamplingFields samplingFields;

    JobReader(EngineInfo info, ServerConfig config, Tokenizer tokenizer) {
        this.info = info;
        this.legs = config.legs();
        this.takesPriorities = config.takesPriorities();
        this.samplingFields = new SamplingFields(tokenizer, info.model().vocabularySize());
    }

    /**
     * A prompt as an endpoint read it.
     *
     * @param tokens what the model reads
     * @param echo text that stands before the output
     */
    record Prompt(List<Integer> tokens, String echo) {}

    /**
     * What an endpoint has read of a request.
     *
     * @param prefix what the answer's id begins with
     * @param numbered whether engines call a sequence by the answer's id and its number, or by the
     *     id alone; as vLLM's do, whose push connector goes by that
     * @param maxTokens the limit for each choice
     * @param logprobs likely tokens to report per token, or null
     * @param echoes whether log probabilities begin with the prompt's
     * @param generates whether output is told
     */
    record Draft(
            AnswerFormat format,
            String prefix,
            boolean numbered,
            List<Prompt> prompts,
            MaxTokens maxTokens,
            @Nullable Integer logprobs,
            boolean echoes,
            boolean generates) {}

    /**
     * Makes a job.
     *
     * @param requestId the client's or a fresh id
     */
    Job read(RequestBody body, Draft draft, String requestId) {
        requireModel(body.text("model"));
        boolean stream = body.flag("stream", false);
        int choices = choices(body, draft.prompts().size());
        @Nullable KvTransferParams params = transferParams(body, choices, draft.prompts().size());
        int priority = priority(body);
        @Nullable Integer echoedTop = draft.echoes() ? draft.logprobs() : null;
        @Nullable Integer top = promptLogprobs(body, stream);
        String id = draft.prefix() + requestId;
        List<GenerationRequest> requests = new ArrayList<>();
        for (Prompt prompt : draft.prompts()) {
            List<Integer> tokens = List.copyOf(prompt.tokens()); // shared by its choices
            SamplingParameters sampling =
                    samplingFields.read(
                            body,
                            draft.maxTokens().within(info.maxModelLength() - tokens.size()),
                            draft.logprobs(),
                            larger(echoedTop, top));
            for (int i = 0; i < choices; i++) {
                // Unique although clients may give two requests one id.
                String own = id + "-" + requests.size() + "-" + UUID.randomUUID();
                requests.add(
                        new GenerationRequest(
                                own,
                                draft.numbered() ? id + "-" + requests.size() : id,
                                tokens,
                                withSeed(sampling, i),
                                i == 0 ? params : null,
                                priority));
            }
        }
        return new Job(
                id,
                draft.format(),
                requests,
                choices,
                draft.prompts().stream()
                        .map(prompt -> new Job.PromptReport(prompt.echo(), echoedTop, top))
                        .toList(),
                draft.generates(),
                stream,
                StreamedUsage.of(body, stream),
                body.flag("return_token_ids", false));
    }

    private static @Nullable Integer larger(@Nullable Integer one, @Nullable Integer other) {
        if (one == null || other == null) {
            return one == null ? other : one;
        }
        return Math.max(one, other);
    }

    /** The message has vLLM's words, since clients go by them. */
    private int priority(RequestBody body) {
        int priority = body.integer("priority", 0);
        if (priority != 0 && !takesPriorities) {
            throw ApiException.badRequest(
                    "priority",
                    "priority is "
                            + priority
                            + ", but must be 0: Priority scheduling is not enabled; start with --scheduling-policy priority");
        }
        return priority;
    }

    /** As in vLLM, a stream has no place for them. */
    private static @Nullable Integer promptLogprobs(RequestBody body, boolean stream) {
        if (body.node("prompt_logprobs") == null) {
            return null;
        }
        if (stream) {
            throw ApiException.badRequest(
                    "prompt_logprobs", "prompt_logprobs needs stream to be false");
        }
        return body.integer("prompt_logprobs", 0);
    }

    /**
     * Choices of each prompt. Asked before a prompt is read, so that no request costs more than a
     * bounded number of prompts.
     */
    int choices(RequestBody body, int prompts) {
        int choices = body.integer("n", 1);
        if (choices < 1 || (long) choices * prompts > MAX_CHOICES) {
            throw ApiException.badRequest(
                    "n",
                    "n is "
                            + choices
                            + " for "
                            + prompts
                            + " prompts, but together they must be 1 to "
                            + MAX_CHOICES);
        }
        if (body.integer("best_of", choices) != choices) {
            throw ApiException.badRequest(
                    "best_of", "best_of must equal n, since every choice is returned");
        }
        return choices;
    }

    /** A prompt of tokens that the body names. */
    List<Integer> prompt(String field, JsonNode tokens, Truncation truncation) {
        RequestBody.requireArray(field, tokens, "a list of integers");
        int from = truncation.from(tokens.size());
        int to = truncation.to(tokens.size());
        requireLength(field, to - from);
        return requireTokens(field, RequestBody.integers(field, tokens, from, to));
    }

    /** A prompt that was a text. */
    List<Integer> prompt(String field, int[] tokens, Truncation truncation) {
        int from = truncation.from(tokens.length);
        int to = truncation.to(tokens.length);
        requireLength(field, to - from);
        return requireTokens(field, Arrays.stream(tokens, from, to).boxed().toList());
    }

    /** How the body wants long prompts to be cut. */
    Truncation truncation(RequestBody body, MaxTokens maxTokens) {
        return Truncation.of(body, info.maxModelLength(), maxTokens);
    }

    /** Refuses what the engine would refuse, before it costs memory. */
    private void requireLength(String field, int tokens) {
        if (tokens >= info.maxModelLength()) {
            throw ApiException.badRequest(
                    field,
                    "the prompt has "
                            + tokens
                            + " tokens, but the model's length is "
                            + info.maxModelLength()
                            + " tokens and one must be left for the output; shorten the prompt");
        }
    }

    /** Refuses token ids that the model does not have. */
    List<Integer> requireTokens(String field, List<Integer> tokens) {
        if (tokens.isEmpty()) {
            throw ApiException.badRequest(
                    field, field + " is empty, but must have at least one token");
        }
        for (int token : tokens) {
            if (token < 0 || token >= info.model().vocabularySize()) {
                throw ApiException.badRequest(
                        field,
                        field
                                + " has token id "
                                + token
                                + ", but the vocabulary ends at "
                                + (info.model().vocabularySize() - 1));
            }
        }
        return tokens;
    }

    /** Choices of one prompt draw from seeds of their own, the first from the client's. */
    private static SamplingParameters withSeed(SamplingParameters sampling, int choice) {
        Long seed = sampling.seed();
        return seed == null || choice == 0 ? sampling : sampling.withSeed(seed + choice);
    }

    /** Refuses another model's name. */
    void requireModel(@Nullable String model) {
        if (model != null && !model.equals(info.servedModelName())) {
            throw ApiException.of(
                    404,
                    "model_not_found",
                    "the model `"
                            + model
                            + "` does not exist here; this engine serves `"
                            + info.servedModelName()
                            + "`");
        }
    }

    /**
     * The blocks of a prompt that another engine holds are read once: the prompt's further choices
     * find them in the prefix cache.
     */
    private @Nullable KvTransferParams transferParams(RequestBody body, int choices, int prompts) {
        JsonNode json = body.node("kv_transfer_params");
        if (json == null) {
            return null;
        }
        KvTransferParams params;
        try {
            params = KvTransferParams.of(json);
        } catch (ConnectorException e) {
            throw ApiException.badRequest("kv_transfer_params", String.valueOf(e.getMessage()));
        }
        if (prompts != 1 || (choices != 1 && !params.remotePrefill())) {
            throw ApiException.badRequest(
                    "kv_transfer_params",
                    "kv_transfer_params names the blocks of one sequence, but the request asks for "
                            + choices * prompts);
        }
        String problem = legs.refusal(params);
        if (problem == null) {
            problem = params.problem();
        }
        if (problem != null) {
            throw ApiException.badRequest("kv_transfer_params", problem);
        }
        return params;
    }
}
