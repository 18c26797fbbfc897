package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.connector.ConnectorException;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.function.IntFunction;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/**
 * What the completion endpoints' requests have in common, from body to {@link Job}. Thread-safe.
 */
final class JobReader {
    /** Sequences of one request at most. */
    private static final int MAX_CHOICES = 128;

    private final EngineInfo info;
    private final ServedLegs legs;
    private final SamplingFields samplingFields;

    JobReader(EngineInfo info, ServedLegs legs) {
        this.info = info;
        this.legs = legs;
        this.samplingFields = new SamplingFields(info.model().vocabularySize());
    }

    /**
     * Makes a job.
     *
     * @param id the answer's
     * @param sharedId what engines call the n-th sequence among themselves
     * @param prompts token ids of each prompt
     * @param maxTokens the token limit for a prompt of a given length
     * @param logprobs likely tokens to report, or null
     */
    Job read(
            RequestBody body,
            AnswerFormat format,
            String id,
            IntFunction<String> sharedId,
            List<List<Integer>> prompts,
            ToIntFunction<List<Integer>> maxTokens,
            @Nullable Integer logprobs) {
        requireModel(body);
        int choices = choices(body, prompts.size());
        @Nullable KvTransferParams params = transferParams(body, choices * prompts.size());
        List<GenerationRequest> requests = new ArrayList<>();
        for (List<Integer> tokens : prompts) {
            List<Integer> prompt = List.copyOf(tokens); // shared by its choices
            SamplingParameters sampling =
                    samplingFields.read(body, maxTokens.applyAsInt(prompt), logprobs);
            for (int i = 0; i < choices; i++) {
                // Unique although clients may give two requests one id.
                String own = id + "-" + requests.size() + "-" + UUID.randomUUID();
                requests.add(
                        new GenerationRequest(
                                own,
                                sharedId.apply(requests.size()),
                                prompt,
                                withSeed(sampling, i),
                                params));
            }
        }
        return new Job(
                id,
                format,
                requests,
                choices,
                body.flag("stream", false),
                includeUsage(body),
                body.flag("return_token_ids", false));
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
        return choices;
    }

    /** A prompt of tokens that the body names. */
    List<Integer> prompt(String field, JsonNode tokens) {
        requireLength(field, tokens.size());
        return requireTokens(field, RequestBody.integers(field, tokens));
    }

    /** A prompt that was a text. */
    List<Integer> prompt(String field, int[] tokens) {
        requireLength(field, tokens.length);
        return requireTokens(field, Arrays.stream(tokens).boxed().toList());
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

    /** The token limit of the body's field, or all that fits behind the prompt. */
    int roomOr(@Nullable Long limit, String field, List<Integer> prompt) {
        if (limit == null) {
            return Math.max(1, info.maxModelLength() - prompt.size());
        }
        if (limit < 1 || limit > Integer.MAX_VALUE) {
            throw ApiException.badRequest(
                    field, field + " is " + limit + ", but must be at least 1");
        }
        return limit.intValue();
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

    private void requireModel(RequestBody body) {
        String model = body.text("model");
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

    private static boolean includeUsage(RequestBody body) {
        JsonNode options = body.node("stream_options");
        if (options == null) {
            return false;
        }
        if (!options.isObject()) {
            throw RequestBody.wrongType("stream_options", options, "an object");
        }
        return options.path("include_usage").asBoolean(false);
    }

    private @Nullable KvTransferParams transferParams(RequestBody body, int sequences) {
        JsonNode json = body.node("kv_transfer_params");
        if (json == null) {
            return null;
        }
        if (sequences != 1) {
            throw ApiException.badRequest(
                    "kv_transfer_params",
                    "kv_transfer_params names the blocks of one sequence, but the request asks for "
                            + sequences);
        }
        KvTransferParams params;
        try {
            params = KvTransferParams.of(json);
        } catch (ConnectorException e) {
            throw ApiException.badRequest("kv_transfer_params", String.valueOf(e.getMessage()));
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
