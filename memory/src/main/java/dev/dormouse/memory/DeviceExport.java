package dev.dormouse.memory;

import dev.dormouse.foreign.Libc;
import java.util.List;

/**
 * File descriptors of a tag's physical device memory, for other processes to import. While one is
 * open, here or where it was sent, the device does not get that memory back.
 *
 * @param pieces in the order of their addresses, one behind the other without gaps
 */
public record DeviceExport(List<Piece> pieces) implements AutoCloseable {
    /**
     * One piece of physical memory.
     *
     * @param fileDescriptor owned by the export
     * @param lengthBytes its length, all of which lies under the tag's addresses
     */
    public record Piece(int fileDescriptor, long lengthBytes) {}

    /** Copies the list. */
    public DeviceExport {
        pieces = List.copyOf(pieces);
    }

    /** Closes the descriptors. To be called once: their numbers belong to others afterwards. */
    @Override
    public void close() {
        pieces.forEach(piece -> Libc.close(piece.fileDescriptor()));
    }
}
