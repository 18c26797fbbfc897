package dev.dormouse.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Which parts of an address range are mapped. Not thread-safe. */
final class MappedPieces {
    private final long rangeBytes;
    private final TreeMap<Long, Long> lengths = new TreeMap<>();
    private long mappedBytes;

    MappedPieces(long rangeBytes) {
        this.rangeBytes = rangeBytes;
    }

    /**
     * Refuses a piece that does not fit or touches a mapped one.
     *
     * @param lengthBytes more than 0
     */
    void requireFree(long offsetBytes, long lengthBytes) {
        if (offsetBytes < 0 || lengthBytes > rangeBytes || offsetBytes > rangeBytes - lengthBytes) {
            throw new IllegalArgumentException(
                    "map refused: offsetBytes=%d lengthBytes=%d leave the range of %d bytes"
                            .formatted(offsetBytes, lengthBytes, rangeBytes));
        }
        Map.Entry<Long, Long> before = lengths.lowerEntry(offsetBytes + lengthBytes);
        if (before != null && before.getKey() + before.getValue() > offsetBytes) {
            throw new IllegalStateException(
                    "map refused: offsetBytes=%d lengthBytes=%d meet the piece at %d of %d bytes; unmap it first"
                            .formatted(
                                    offsetBytes, lengthBytes, before.getKey(), before.getValue()));
        }
    }

    void add(long offsetBytes, long lengthBytes) {
        lengths.put(offsetBytes, lengthBytes);
        mappedBytes += lengthBytes;
    }

    /** The length of the piece that starts there. */
    long lengthAt(long offsetBytes) {
        Long length = lengths.get(offsetBytes);
        if (length == null) {
            throw new IllegalArgumentException(
                    "no piece is mapped at offsetBytes=%d; pieces start at %s"
                            .formatted(offsetBytes, lengths.keySet()));
        }
        return length;
    }

    void remove(long offsetBytes) {
        mappedBytes -= lengthAt(offsetBytes);
        lengths.remove(offsetBytes);
    }

    /** Refuses a part that is not mapped from end to end. */
    void requireMapped(long offsetBytes, long lengthBytes) {
        if (offsetBytes < 0 || lengthBytes <= 0 || offsetBytes > rangeBytes - lengthBytes) {
            throw new IllegalArgumentException(
                    "offsetBytes=%d lengthBytes=%d leave the range of %d bytes"
                            .formatted(offsetBytes, lengthBytes, rangeBytes));
        }
        long covered = offsetBytes;
        while (covered < offsetBytes + lengthBytes) {
            Map.Entry<Long, Long> piece = lengths.floorEntry(covered);
            if (piece == null || piece.getKey() + piece.getValue() <= covered) {
                throw new IllegalStateException(
                        "offsetBytes=%d lengthBytes=%d: nothing is mapped at %d"
                                .formatted(offsetBytes, lengthBytes, covered));
            }
            covered = piece.getKey() + piece.getValue();
        }
    }

    /** Pieces side by side. */
    record Stretch(long offsetBytes, long lengthBytes) {}

    /** All that is mapped, as few parts. */
    List<Stretch> stretches() {
        List<Stretch> stretches = new ArrayList<>();
        lengths.forEach(
                (offset, length) -> {
                    Stretch last = stretches.isEmpty() ? null : stretches.getLast();
                    if (last != null && last.offsetBytes() + last.lengthBytes() == offset) {
                        stretches.removeLast();
                        stretches.add(new Stretch(last.offsetBytes(), last.lengthBytes() + length));
                    } else {
                        stretches.add(new Stretch(offset, length));
                    }
                });
        return stretches;
    }

    /** Forgets the pieces of a part. */
    void removeWithin(long offsetBytes, long lengthBytes) {
        List<Long> within =
                List.copyOf(lengths.subMap(offsetBytes, offsetBytes + lengthBytes).keySet());
        within.forEach(this::remove);
    }

    long mappedBytes() {
        return mappedBytes;
    }
}
