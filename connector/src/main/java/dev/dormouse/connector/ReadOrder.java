package dev.dormouse.connector;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One request's read.
 *
 * @param requestId this engine's request
 * @param remote where its blocks are
 * @param localBlocks local blocks to fill; empty if the producer only has to be told that nothing
 *     is read
 * @param remoteBlocks the producer's blocks of the whole prompt; the local ones pair with its tail
 * @param awaited whether the scheduler waits for the request to appear in {@code finishedReceiving}
 * @param arrivedSeconds when the request came, on the scheduler's clock; NaN for just now
 * @param refusal why the read must not be made but reported as failed; null if it may be made
 */
public record ReadOrder(
        String requestId,
        RemoteSource remote,
        List<Integer> localBlocks,
        List<Integer> remoteBlocks,
        boolean awaited,
        double arrivedSeconds,
        @Nullable String refusal) {
    /** Copies the lists. */
    public ReadOrder {
        localBlocks = List.copyOf(localBlocks);
        remoteBlocks = List.copyOf(remoteBlocks);
    }

    /** An order for a request that arrived just now and may be read. */
    public ReadOrder(
            String requestId,
            RemoteSource remote,
            List<Integer> localBlocks,
            List<Integer> remoteBlocks,
            boolean awaited) {
        this(requestId, remote, localBlocks, remoteBlocks, awaited, Double.NaN, null);
    }
}
