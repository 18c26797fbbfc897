package dev.dormouse.connector;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A request whose KV another engine holds. At most one transfer is ordered for it. */
final class Reading {
    private final RemoteHandOver remote;
    private final double arrivedSeconds;
    private final boolean fromDecoder;
    private final @Nullable String refusal;
    private boolean ordered;

    /**
     * One of which nothing was ordered.
     *
     * @param fromDecoder whether this engine computes the prompt of a next turn, and a decode
     *     engine holds its beginning
     * @param refusal why the holder's blocks cannot be this request's, or null
     */
    Reading(
            RemoteHandOver remote,
            double arrivedSeconds,
            boolean fromDecoder,
            @Nullable String refusal) {
        this.remote = remote;
        this.arrivedSeconds = arrivedSeconds;
        this.fromDecoder = fromDecoder;
        this.refusal = refusal;
    }

    RemoteHandOver remote() {
        return remote;
    }

    boolean fromDecoder() {
        return fromDecoder;
    }

    @Nullable String refusal() {
        return refusal;
    }

    boolean ordered() {
        return ordered;
    }

    void markOrdered() {
        ordered = true;
    }

    /**
     * How many of the prompt's tokens behind the local ones are to be read. Of a prompt that cannot
     * be read all are, so that the read is reported as failed; unless this engine is the one to
     * compute it anyhow.
     */
    int externalTokens(
            ConnectorRequest request, int localTokens, int blockTokens, int recomputeThreshold) {
        long capacity = (long) remote.blocks().size() * blockTokens;
        if (!fromDecoder) {
            long usable =
                    refusal == null
                            ? Math.min(capacity, request.promptTokens())
                            : request.promptTokens();
            return (int) Math.max(0, usable - localTokens);
        }
        long held = Math.min(Math.min(capacity, remote.tokens()), request.promptTokens());
        long count = refusal == null ? held - localTokens : 0;
        return count < Math.max(1, recomputeThreshold) ? 0 : (int) count;
    }

    /**
     * The order to read a request's blocks behind the local ones.
     *
     * @param blocks that were allocated for the request
     * @throws IllegalArgumentException if blocks and tokens do not fit together
     */
    ReadOrder order(
            ConnectorRequest request,
            int[] blocks,
            int localTokens,
            int externalTokens,
            int blockTokens) {
        int first = localTokens / blockTokens;
        int end = Math.ceilDiv(localTokens + externalTokens, blockTokens);
        if (localTokens % blockTokens != 0
                || externalTokens < 0
                || end > blocks.length
                || (refusal == null && end > remote.blocks().size())) {
            throw new IllegalArgumentException(
                    "allocated: request="
                            + request.id()
                            + " blocks="
                            + blocks.length
                            + " remoteBlocks="
                            + remote.blocks().size()
                            + " localTokens="
                            + localTokens
                            + " externalTokens="
                            + externalTokens
                            + " blockTokens="
                            + blockTokens);
        }
        return new ReadOrder(
                request.id(),
                remote.source(),
                Arrays.stream(blocks, first, end).boxed().toList(),
                refusal == null ? remote.blocks() : List.of(),
                localTokens,
                localTokens + externalTokens,
                true,
                arrivedSeconds,
                refusal);
    }
}
