package dev.dormouse.cli.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
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

    /** A huge page, and what a sleep's chunks have. */
    private static final long CHUNK_BYTES = 2L << 20;

    private static final long PAGE_BYTES = 4 << 10;
    private static final int NO_FILE = -1;

    /** Measures with as many bytes, 8 GiB at most, which are given back. */
    static HostLimits measure(long bytes, int threads) {
        int chunks = Math.toIntExact(Math.ceilDiv(Math.min(bytes, MOST_BYTES), CHUNK_BYTES));
        MemorySegment mapping =
                Libc.map(
                        (chunks + 1) * CHUNK_BYTES,
                        Libc.PROT_READ | Libc.PROT_WRITE,
                        Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS,
                        NO_FILE,
                        0);
        try (ComputeThreads pool = new ComputeThreads(threads);
                Arena arena = Arena.ofShared()) {
            long start = CHUNK_BYTES - Math.floorMod(mapping.address(), CHUNK_BYTES);
            MemorySegment pages = mapping.asSlice(start, chunks * CHUNK_BYTES);
            MemorySegment staged = arena.allocate(threads * CHUNK_BYTES, CHUNK_BYTES);
            adviseHugePages(pages);
            double made = rate(pool, chunks, (i, _) -> touch(at(pages, i)));
            double read =
                    rate(pool, chunks, (i, thread) -> at(staged, thread).copyFrom(at(pages, i)));
            return new HostLimits(made, read);
        } finally {
            Libc.unmap(mapping);
        }
    }

    private static void adviseHugePages(MemorySegment pages) {
        try {
            Libc.advise(pages, Libc.MADV_HUGEPAGE);
        } catch (LibcException e) {
            if (!e.errnoName().equals("EINVAL")) { // this kernel has none, for sleeps neither
                throw e;
            }
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
