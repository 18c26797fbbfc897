package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * What the connector knows of a request.
 *
 * @param id the engine's own id, unique for the life of the engine
 * @param promptTokens length of the prompt
 * @param promptHash tells the prompt's tokens from any others; null if unknown
 * @param params the request's {@code kv_transfer_params}, or null if it has none
 */
public record ConnectorRequest(
        String id,
        int promptTokens,
        @Nullable String promptHash,
        @Nullable KvTransferParams params) {
    /** A request of which only the prompt's length is known. */
    public ConnectorRequest(String id, int promptTokens, @Nullable KvTransferParams params) {
        this(id, promptTokens, null, params);
    }
}
