package dev.dormouse.transport.local;

import java.util.List;
import java.util.UUID;

/**
 * The pieces of a device's physical memory that lie under a range of device memory now, one behind
 * the other. They may begin before the range and end after it.
 *
 * @param device as the driver tells it, the same in every process
 * @param address where the first piece starts in this process
 * @param pieces in the order of their addresses, without gaps
 */
public record BackingPieces(UUID device, long address, List<Piece> pieces) implements Backing {
    /** Copies the list. */
    public BackingPieces {
        pieces = List.copyOf(pieces);
    }

    /**
     * One piece.
     *
     * @param descriptor what the driver exported; the receiver closes it
     * @param lengthBytes what was allocated
     */
    public record Piece(int descriptor, long lengthBytes) {}
}
