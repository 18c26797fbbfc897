package dev.dormouse.transport.local;

import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The pieces of device memory behind a registration's ranges, each once, in the order of their
 * addresses. A peer gets whole pieces, also of those of which a range has only a part; its
 * transport uses nothing else. What the driver exports can be mapped for writing by whoever has it.
 */
final class SharedPieces implements SharedBacking {
    private final SegmentAccess access;
    private final TreeMap<Long, BackingPieces.Piece> pieces = new TreeMap<>();
    private final List<SharedSegment> segments = new ArrayList<>();
    private @Nullable UUID device;

    private SharedPieces(SegmentAccess access) {
        this.access = access;
    }

    /** As {@link SharedBacking#of}. */
    static SharedPieces of(List<MemoryRange> ranges, SegmentSource source, SegmentAccess access) {
        SharedPieces shared = new SharedPieces(access);
        try {
            for (MemoryRange range : ranges) {
                shared.add(range, source.export(range));
            }
            for (MemoryRange range : ranges) {
                shared.segments.add(shared.segment(range));
            }
            return shared;
        } catch (RuntimeException e) {
            shared.close();
            throw e;
        }
    }

    /** Keeps what the range needs and is not there. */
    private void add(MemoryRange range, Backing backing) {
        if (!(backing instanceof BackingPieces told)
                || (device != null && !device.equals(told.device()))) {
            SharedBacking.discard(backing);
            throw new TransportException(
                    "register %s failed: not backed by one device's memory".formatted(range));
        }
        device = told.device();
        long address = told.address();
        for (BackingPieces.Piece piece : told.pieces()) {
            boolean needed =
                    address < range.address() + range.lengthBytes()
                            && piece.lengthBytes() > range.address() - address;
            if (!needed || pieces.putIfAbsent(address, piece) != null) {
                SharedBacking.closeQuietly(piece.descriptor());
            }
            address += piece.lengthBytes();
        }
    }

    private SharedSegment segment(MemoryRange range) {
        Map.Entry<Long, BackingPieces.Piece> first = pieces.floorEntry(range.address());
        long covered = range.address();
        for (Map.Entry<Long, BackingPieces.Piece> piece = first;
                piece != null && piece.getKey() <= covered;
                piece = pieces.higherEntry(piece.getKey())) {
            covered = Math.max(covered, piece.getKey() + piece.getValue().lengthBytes());
        }
        if (first == null || covered < range.address() + range.lengthBytes()) {
            throw new TransportException(
                    "register %s failed: only its first %d bytes are backed by memory to share"
                            .formatted(range, covered - range.address()));
        }
        return new SharedSegment(
                range.address(),
                range.lengthBytes(),
                pieces.headMap(first.getKey()).size(),
                range.address() - first.getKey());
    }

    @Override
    public SharedMemory memory() {
        return new SharedMemory.DevicePieces(
                java.util.Objects.requireNonNull(device),
                access == SegmentAccess.READ_WRITE,
                pieces.values().stream().map(BackingPieces.Piece::lengthBytes).toList());
    }

    @Override
    public List<Integer> descriptors() {
        return pieces.values().stream().map(BackingPieces.Piece::descriptor).toList();
    }

    @Override
    public List<SharedSegment> segments() {
        return segments;
    }

    @Override
    public void close() {
        descriptors().forEach(SharedBacking::closeQuietly);
        pieces.clear();
    }
}
