package dev.dormouse.cuda;

import java.util.List;

/**
 * One way to build and launch {@code gather.cu}; see there.
 *
 * @param bulk whether blocks whose addresses and length are multiples of 16 go through the copy
 *     engines of the multiprocessors (compute capability 9.0)
 * @param unroll loads on their way per thread
 * @param threads per block of threads
 * @param blocksPerMultiprocessor how large the grid is, where a warp takes many pieces; 0 for a
 *     grid of one piece per warp. As many as fit, if bulk
 * @param streamingStores whether what was written leaves the L2 cache first
 * @param chunkBytes of a stage of the ring
 * @param stages of the ring
 * @param lookahead stages that are being read, at most {@code stages - 1}
 */
record GatherVariant(
        boolean bulk,
        int unroll,
        int threads,
        int blocksPerMultiprocessor,
        boolean streamingStores,
        int chunkBytes,
        int stages,
        int lookahead) {
    static final GatherVariant DEFAULT = warps(8, 256, 0, true);

    static GatherVariant warps(
            int unroll, int threads, int blocksPerMultiprocessor, boolean streamingStores) {
        return new GatherVariant(
                false, unroll, threads, blocksPerMultiprocessor, streamingStores, 4096, 8, 6);
    }

    static GatherVariant bulk(int chunkBytes, int stages, int lookahead) {
        return new GatherVariant(true, 8, 256, 0, true, chunkBytes, stages, lookahead);
    }

    List<String> options() {
        return List.of(
                "-DUNROLL=" + unroll,
                "-DTHREADS=" + threads,
                "-DSTREAMING_STORES=" + (streamingStores ? 1 : 0),
                "-DCHUNK=" + chunkBytes,
                "-DSTAGES=" + stages,
                "-DLOOKAHEAD=" + lookahead);
    }

    int ringBytes() {
        return chunkBytes * stages;
    }
}
