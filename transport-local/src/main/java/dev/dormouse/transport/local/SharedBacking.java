package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.TransportException;
import java.util.List;

/**
 * What backs a registration's ranges, as peers get it: descriptors, each of which keeps memory from
 * the machine until it is closed, here and where it was sent.
 */
sealed interface SharedBacking extends AutoCloseable permits SharedFiles, SharedPieces {
    /** What the descriptors are. */
    SharedMemory memory();

    /** In the order of the segments' indices. They stay this object's. */
    List<Integer> descriptors();

    /** The ranges, in the order of registration. */
    List<SharedSegment> segments();

    /** Closes the descriptors. Idempotent. */
    @Override
    void close();

    /**
     * Asks for what is behind each range.
     *
     * @throws TransportException if something has nothing that peers can map safely, or the ranges
     *     are of several kinds or devices; nothing is kept open
     */
    static SharedBacking of(List<MemoryRange> ranges, SegmentSource source, SegmentAccess access) {
        MemoryRange first = ranges.getFirst();
        for (MemoryRange range : ranges) {
            if (range.kind() != first.kind() || range.deviceId() != first.deviceId()) {
                throw new TransportException(
                        "register failed: %s and %s are of two kinds; register them with two agents"
                                .formatted(first, range));
            }
        }
        try {
            return first.kind() == MemoryKind.DRAM
                    ? SharedFiles.of(ranges, source, access)
                    : SharedPieces.of(ranges, source, access);
        } catch (TransportException e) {
            throw e;
        } catch (RuntimeException e) {
            throw new TransportException(
                    "register failed: there is nothing to share: " + e.getMessage(), e);
        }
    }

    /** Closes descriptors that nobody wants. */
    static void discard(Backing backing) {
        switch (backing) {
            case BackingFile file -> closeQuietly(file.descriptor());
            case BackingPieces pieces ->
                    pieces.pieces().forEach(piece -> closeQuietly(piece.descriptor()));
        }
    }

    /** Closing such a descriptor has nothing to lose. */
    static void closeQuietly(int descriptor) {
        try {
            Libc.close(descriptor);
        } catch (LibcException e) {
            System.getLogger("dormouse.transport.local")
                    .log(System.Logger.Level.WARNING, "a descriptor was not closed", e);
        }
    }
}
