package dev.dormouse.engine;

import dev.dormouse.connector.KvTransferParams;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One sequence to generate.
 *
 * @param id unique among live requests
 * @param promptTokens the prompt, at least one token
 * @param sampling how to choose tokens and when to stop
 * @param kvTransferParams where the prompt's KV is, or that it shall be held; null for neither
 */
public record GenerationRequest(
        String id,
        List<Integer> promptTokens,
        SamplingParameters sampling,
        @Nullable KvTransferParams kvTransferParams) {
    /** Copies the prompt. */
    public GenerationRequest {
        promptTokens = List.copyOf(promptTokens);
    }
}
