package dev.dormouse.cli.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.dormouse.foreign.HugePages;
import dev.dormouse.model.kernel.ComputeThreads;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What the host's memory gives the threads that a sleep and a wake use, without a GPU: beside the
 * bus, the limit of both.
 *
 * @param newGigabytesPerSecond 10^9 bytes of pages that nobody had, in huge ones if there are, made
 *     in a second
 * @param readGigabytesPerSecond 10^9 bytes of those pages copied, in a second, to a chunk per
 *     thread
 */
record HostLimits(double newGigabytesPerSecond, double readGigabytesPerSecond) {
    private static final long MOST_BYTES = 8L << 30;

    /** What a sleep's chunks have. */
    private static final long CHUNK_BYTES = HugePages.PAGE_BYTES;

    private static final long PAGE_BYTES = 4 << 10;

    /** Measures with as many bytes, 8 GiB at most, which are given back. */
    static HostLimits measure(long bytes, int threads) {
        int chunks = Math.toIntExact(Math.ceilDiv(Math.min(bytes, MOST_BYTES), CHUNK_BYTES));
        try (HugePages host = HugePages.map(chunks * CHUNK_BYTES);
                ComputeThreads pool = new ComputeThreads(threads);
                Arena arena = Arena.ofShared()) {
            MemorySegment pages = host.segment();
            MemorySegment staged = arena.allocate(threads * CHUNK_BYTES, CHUNK_BYTES);
            double made = rate(pool, chunks, (i, _) -> touch(at(pages, i)));
            double read =
                    rate(pool, chunks, (i, thread) -> at(staged, thread).copyFrom(at(pages, i)));
            return new HostLimits(made, read);
        }
    }

    private static void touch(MemorySegment chunk) {
        for (long at = 0; at < chunk.byteSize(); at += PAGE_BYTES) {
            chunk.set(JAVA_BYTE, at, (byte) 1);
        }
    }

    private interface ChunkWork {
        void run(int chunk, int thread);
    }

    private static double rate(ComputeThreads pool, int chunks, ChunkWork work) {
        long start = System.nanoTime();
        pool.run(
                chunks,
                1,
                (from, to, thread) -> {
                    for (int chunk = from; chunk < to; chunk++) {
                        work.run(chunk, thread);
                    }
                });
        return chunks * CHUNK_BYTES / (double) (System.nanoTime() - start);
    }

    private static MemorySegment at(MemorySegment memory, int chunk) {
        return memory.asSlice(chunk * CHUNK_BYTES, CHUNK_BYTES);
    }
}
