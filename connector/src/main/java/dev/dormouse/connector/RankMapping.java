package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.List;

/**
 * Which ranks of a peer hold the KV heads of one rank here. vLLM's rules: one of the two tensor
 * parallel sizes divides the other; heads are dealt to ranks in order, in equal shares; an engine
 * with more ranks than heads repeats each head on as many ranks.
 *
 * @param remoteSize the peer's tensor parallel size
 * @param slices one per source rank, in rank order: all the ranks that wait for this rank's
 *     completion
 * @param consumers how many readers each of those ranks has
 */
record RankMapping(int remoteSize, List<Slice> slices, int consumers) {
    /**
     * What one source rank has for this rank.
     *
     * @param sourceRank the peer's rank
     * @param firstRemoteHead where it starts, in heads of the source rank
     * @param firstLocalHead where it goes, in heads of this rank
     * @param heads how many
     * @param remoteHeads heads that the source rank has
     * @param localHeads heads that this rank has
     * @param repeated true if an earlier source has the same heads: it is told of the completion,
     *     but not read
     */
    record Slice(
            int sourceRank,
            int firstRemoteHead,
            int firstLocalHead,
            int heads,
            int remoteHeads,
            int localHeads,
            boolean repeated) {
        Slice notRepeated() {
            return new Slice(
                    sourceRank,
                    firstRemoteHead,
                    firstLocalHead,
                    heads,
                    remoteHeads,
                    localHeads,
                    false);
        }

        /** True if the slice is all that either side has. */
        boolean isWhole() {
            return heads == remoteHeads && heads == localHeads;
        }
    }

    RankMapping {
        slices = List.copyOf(slices);
    }

    /**
     * The mapping for rank {@code localRank} of {@code localSize}.
     *
     * @param kvHeads KV heads of the model
     * @throws ConnectorException with both sizes, if ranks of such engines do not fit together
     */
    static RankMapping of(int localRank, int localSize, int remoteSize, int kvHeads) {
        if (Math.max(localSize, remoteSize) % Math.min(localSize, remoteSize) != 0
                || !isDealt(kvHeads, localSize)
                || !isDealt(kvHeads, remoteSize)) {
            throw new ConnectorException(
                    "parallel sizes differ: here tensor parallel "
                            + localSize
                            + ", at the peer "
                            + remoteSize
                            + ", with "
                            + kvHeads
                            + " KV heads; one size must divide the other, and heads and ranks must"
                            + " divide evenly");
        }
        int sources = Math.max(1, remoteSize / localSize);
        int firstSource =
                remoteSize >= localSize
                        ? localRank * sources
                        : localRank / (localSize / remoteSize);
        int localHeads = headsOf(kvHeads, localSize);
        int remoteHeads = headsOf(kvHeads, remoteSize);
        int heads = Math.min(localHeads, remoteHeads);
        int localStart = firstHead(kvHeads, localSize, localRank);
        List<Slice> slices = new ArrayList<>();
        int covered = localStart;
        for (int i = 0; i < sources; i++) {
            int remoteStart = firstHead(kvHeads, remoteSize, firstSource + i);
            int start = Math.max(localStart, remoteStart);
            boolean repeated = start < covered;
            covered = Math.max(covered, start + heads);
            slices.add(
                    new Slice(
                            firstSource + i,
                            start - remoteStart,
                            start - localStart,
                            heads,
                            remoteHeads,
                            localHeads,
                            repeated));
        }
        return new RankMapping(remoteSize, slices, Math.max(1, localSize / remoteSize));
    }

    /** This mapping for writes: a rank is not spared them since another has the same heads. */
    RankMapping withoutRepeats() {
        return new RankMapping(
                remoteSize, slices.stream().map(Slice::notRepeated).toList(), consumers);
    }

    /** True if an engine of this tensor parallel size can hold this many heads. */
    static boolean isDealt(int kvHeads, int size) {
        return kvHeads >= 1 && Math.max(kvHeads, size) % Math.min(kvHeads, size) == 0;
    }

    /** The ranks that the peer is asked for. */
    List<RankId> sources() {
        return slices.stream().map(slice -> new RankId(0, slice.sourceRank())).toList();
    }

    private static int headsOf(int kvHeads, int size) {
        return Math.max(1, kvHeads / size);
    }

    private static int firstHead(int kvHeads, int size, int rank) {
        return (int) ((long) rank * kvHeads / size);
    }
}
