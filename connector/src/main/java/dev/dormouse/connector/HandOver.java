package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * What becomes of a request that ended.
 *
 * @param holdBlocks true if its blocks must stay until a {@link WorkerReport} names it in {@code
 *     finishedSending}
 * @param params {@code kv_transfer_params} for the response, or null
 */
public record HandOver(boolean holdBlocks, @Nullable KvTransferParams params) {
    /** Nothing is handed over. */
    public static final HandOver NONE = new HandOver(false, null);
}
