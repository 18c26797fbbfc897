package dev.dormouse.engine;

import dev.dormouse.connector.KvTransferParams;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One sequence to generate.
 *
 * @param id unique among live requests
 * @param sharedId what the request is called at every engine that has to do with it; need not be
 *     unique. Peers know it with a random suffix, as with vLLM, whose push connector brings two
 *     engines' halves of a request together by what comes before that
 * @param promptTokens the prompt, at least one token
 * @param sampling how to choose tokens and when to stop
 * @param kvTransferParams where the prompt's KV is, or that it shall be held; null for neither
 * @param priority a smaller one comes first, and among equal ones who came first; whoever is last
 *     gives its blocks when there are none left
 */
public record GenerationRequest(
        String id,
        String sharedId,
        List<Integer> promptTokens,
        SamplingParameters sampling,
        @Nullable KvTransferParams kvTransferParams,
        int priority) {
    /** Copies the prompt. */
    public GenerationRequest {
        promptTokens = List.copyOf(promptTokens);
    }

    /** A request of the ordinary priority, 0, that other engines know by the same id. */
    public GenerationRequest(
            String id,
            List<Integer> promptTokens,
            SamplingParameters sampling,
            @Nullable KvTransferParams kvTransferParams) {
        this(id, id, promptTokens, sampling, kvTransferParams, 0);
    }
}
