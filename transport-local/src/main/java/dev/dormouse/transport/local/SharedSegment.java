package dev.dormouse.transport.local;

/**
 * A range of its owner's memory, and where its pages are. From a piece of device memory it may go
 * on into those behind.
 *
 * @param address in the owner's process
 * @param lengthBytes length
 * @param file index of the descriptor, among all that go along
 * @param offsetBytes where it starts in the file
 */
record SharedSegment(long address, long lengthBytes, int file, long offsetBytes) {
    SharedSegment {
        if (address <= 0
                || lengthBytes < 1
                || address > Long.MAX_VALUE - lengthBytes
                || file < 0
                || offsetBytes < 0
                || offsetBytes > Long.MAX_VALUE - lengthBytes) {
            throw new IllegalArgumentException(
                    "segment: address 0x%x length %d of file %d from %d on is none"
                            .formatted(address, lengthBytes, file, offsetBytes));
        }
    }

    /** Where it ends, counted from the start of the file or piece. */
    long endBytes() {
        return offsetBytes + lengthBytes;
    }
}
