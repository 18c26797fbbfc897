package dev.dormouse.engine;

import dev.dormouse.connector.KvTransferParams;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What becomes of a request. */
public sealed interface GenerationEvent {
    /**
     * The prompt's log probabilities, once, before the first output, if they were asked for.
     *
     * @param tokens one entry per prompt token but the first, which nothing predicts
     */
    record Prompt(List<PromptToken> tokens) implements GenerationEvent {}

    /**
     * New output.
     *
     * @param text text that became complete; may be empty while a character or a possible stop
     *     string is open
     * @param tokenIds the new tokens
     * @param logprobs one entry per new token if they were asked for, otherwise empty
     */
    record Tokens(String text, List<Integer> tokenIds, List<TokenLogprobs> logprobs)
            implements GenerationEvent {}

    /**
     * The request ended.
     *
     * @param reason why
     * @param stopReason the stop string or stop token id that was met, if one of the request's own
     *     was
     * @param usage token counts
     * @param kvTransferParams what a decode engine needs to take over, or null
     */
    record Finished(
            FinishReason reason,
            @Nullable StopReason stopReason,
            Usage usage,
            @Nullable KvTransferParams kvTransferParams)
            implements GenerationEvent {}

    /**
     * The request failed or was refused.
     *
     * @param kind what went wrong, for whoever maps it to a status code
     * @param message for the client: names the value, the limit and the remedy
     */
    record Failed(FailureKind kind, String message) implements GenerationEvent {}

    /** What went wrong. */
    enum FailureKind {
        /** The request can never be served as it is. */
        INVALID_REQUEST,
        /** The engine is paused; try again after its resume. */
        PAUSED,
        /** The engine is asleep, full or closing; try again later. */
        UNAVAILABLE,
        /** The prompt's KV could not be read from the prefill engine. */
        KV_TRANSFER_FAILED,
        /** A fault of the engine. */
        INTERNAL
    }

    /**
     * A token's log probability and those of its rivals.
     *
     * @param tokenId the chosen token
     * @param logprob its natural log probability
     * @param top the most likely tokens, most likely first
     */
    record TokenLogprobs(int tokenId, float logprob, List<Candidate> top) {}

    /**
     * A prompt token's log probability and those of its rivals.
     *
     * @param logprobs of the token behind all tokens before it
     * @param rank how many tokens are at least as likely, itself included
     */
    record PromptToken(TokenLogprobs logprobs, int rank) {}

    /**
     * A likely token.
     *
     * @param tokenId the token
     * @param logprob its natural log probability
     */
    record Candidate(int tokenId, float logprob) {}

    /**
     * Token counts.
     *
     * @param promptTokens tokens of the prompt
     * @param completionTokens tokens generated
     * @param cachedTokens prompt tokens that came from the prefix cache: this engine's, or that of
     *     the engine that computed a prompt which was read, if it told
     */
    record Usage(int promptTokens, int completionTokens, int cachedTokens) {}
}
