package dev.dormouse.engine.sampling;

import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import org.jspecify.annotations.Nullable;

/**
 * The token that was chosen.
 *
 * @param tokenId the token
 * @param logprobs its log probability and its rivals', if the request asked for them
 */
public record SampledToken(int tokenId, @Nullable TokenLogprobs logprobs) {}
