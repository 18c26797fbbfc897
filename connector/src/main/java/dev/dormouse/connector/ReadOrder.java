package dev.dormouse.connector;

import java.util.List;

/**
 * One request's read.
 *
 * @param requestId this engine's request
 * @param remote where its blocks are
 * @param localBlocks local blocks to fill; empty if the producer only has to be told that nothing
 *     is read
 * @param remoteBlocks the producer's blocks of the whole prompt, from its first token on
 * @param firstToken of the prompt, whose KV the first local block takes
 * @param endToken behind the last token that is read
 * @param awaited whether the scheduler waits for the request to appear in {@code finishedReceiving}
 */
public record ReadOrder(
        String requestId,
        RemoteSource remote,
        List<Integer> localBlocks,
        List<Integer> remoteBlocks,
        int firstToken,
        int endToken,
        boolean awaited) {
    /** Copies the lists. */
    public ReadOrder {
        localBlocks = List.copyOf(localBlocks);
        remoteBlocks = List.copyOf(remoteBlocks);
    }

    /** An order to tell the producer that nothing is read. */
    static ReadOrder notice(String requestId, RemoteSource remote) {
        return new ReadOrder(requestId, remote, List.of(), List.of(), 0, 0, false);
    }
}
