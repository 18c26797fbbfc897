package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * What the connector knows of a request.
 *
 * @param id the engine's own id, unique for the life of the engine
 * @param promptTokens length of the prompt
 * @param hashes of the request's first tokens
 * @param params the request's {@code kv_transfer_params}, or null if it has none
 */
public record ConnectorRequest(
        String id, int promptTokens, PrefixHash hashes, @Nullable KvTransferParams params) {
    /** A request of which only the prompt's length is known. */
    public ConnectorRequest(String id, int promptTokens, @Nullable KvTransferParams params) {
        this(id, promptTokens, PrefixHash.UNKNOWN, params);
    }
}
