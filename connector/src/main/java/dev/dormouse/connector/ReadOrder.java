package dev.dormouse.connector;

import java.util.List;

/**
 * One request's read.
 *
 * @param requestId this engine's request
 * @param remote where its blocks are
 * @param localBlocks local blocks to fill; empty if the producer only has to be told that nothing
 *     is read
 * @param remoteBlocks the producer's blocks of the whole prompt; the local ones pair with its tail
 * @param awaited whether the scheduler waits for the request to appear in {@code finishedReceiving}
 */
public record ReadOrder(
        String requestId,
        RemoteSource remote,
        List<Integer> localBlocks,
        List<Integer> remoteBlocks,
        boolean awaited) {
    /** Copies the lists. */
    public ReadOrder {
        localBlocks = List.copyOf(localBlocks);
        remoteBlocks = List.copyOf(remoteBlocks);
    }
}
