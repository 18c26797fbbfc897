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
 * @param remoteBlocks the producer's blocks of the whole prompt, from its first token on
 * @param firstToken of the prompt, whose KV the first local block takes
 * @param endToken behind the last token that is read
 * @param awaited whether the scheduler waits for the request to appear in {@code finishedReceiving}
 * @param arrivedSeconds when the request came, on the scheduler's clock; NaN for just now
 * @param refusal why the read must not be made but reported as failed; null if it may be made
 */
public record ReadOrder(
        String requestId,
        RemoteSource remote,
        List<Integer> localBlocks,
        List<Integer> remoteBlocks,
        int firstToken,
        int endToken,
        boolean awaited,
        double arrivedSeconds,
        @Nullable String refusal)
        implements PeerOrder {
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
            int firstToken,
            int endToken,
            boolean awaited) {
        this(
                requestId,
                remote,
                localBlocks,
                remoteBlocks,
                firstToken,
                endToken,
                awaited,
                Double.NaN,
                null);
    }

    @Override
    public boolean isNotice() {
        return localBlocks.isEmpty();
    }

    @Override
    public boolean needsHold() {
        return true;
    }

    /** An order to tell the producer that nothing is read. */
    static ReadOrder notice(String requestId, RemoteSource remote) {
        return new ReadOrder(requestId, remote, List.of(), List.of(), 0, 0, false);
    }
}
