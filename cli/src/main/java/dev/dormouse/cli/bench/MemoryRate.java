package dev.dormouse.cli.bench;

import dev.dormouse.model.kernel.ComputeThreads;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** How fast memory can be read by some threads, which is what bounds decoding. */
final class MemoryRate {
    private static final int ROUNDS = 20;
    private static final int PIECE_BYTES = 1 << 20;

    private MemoryRate() {}

    /**
     * Sums what the segments hold.
     *
     * @return 10^9 bytes in a second, of the best round
     */
    static double gigabytesPerSecond(List<MemorySegment> segments, int threads) {
        long bytes = segments.stream().mapToLong(MemorySegment::byteSize).sum();
        long best = Long.MAX_VALUE;
        AtomicLong sum = new AtomicLong(); // or nothing need be read
        try (ComputeThreads pool = new ComputeThreads(threads)) {
            for (int round = 0; round < ROUNDS; round++) {
                long start = System.nanoTime();
                for (MemorySegment segment : segments) {
                    pool.run(
                            Math.toIntExact(Math.ceilDiv(segment.byteSize(), PIECE_BYTES)),
                            1,
                            (from, to, _) -> sum.addAndGet(sum(segment, from, to)));
                }
                best = Math.min(best, System.nanoTime() - start);
            }
        }
        return bytes / (double) best;
    }

    private static long sum(MemorySegment segment, int fromPiece, int toPiece) {
        long from = (long) fromPiece * PIECE_BYTES;
        long to = Math.min(segment.byteSize(), (long) toPiece * PIECE_BYTES);
        // Four sums, since one would wait for itself.
        long a = 0;
        long b = 0;
        long c = 0;
        long d = 0;
        for (long at = from; at + 4 * Long.BYTES <= to; at += 4 * Long.BYTES) {
            a += segment.get(ValueLayout.JAVA_LONG, at);
            b += segment.get(ValueLayout.JAVA_LONG, at + Long.BYTES);
            c += segment.get(ValueLayout.JAVA_LONG, at + 2 * Long.BYTES);
            d += segment.get(ValueLayout.JAVA_LONG, at + 3 * Long.BYTES);
        }
        return a + b + c + d;
    }
}
