package dev.dormouse.transport;

/**
 * A row of blocks at even distances.
 *
 * @param address the first block's virtual address, in its owner's process
 * @param blockBytes bytes of one block
 * @param strideBytes bytes from one block's start to the next, at least {@code blockBytes}
 * @param count blocks in the row
 * @param kind where the memory lies
 * @param deviceId the device's ordinal; in host memory that of the registration's ranges
 */
public record BlockRow(
        long address, long blockBytes, long strideBytes, int count, MemoryKind kind, int deviceId) {
    /** Checks the extents, and that the row does not wrap around the address space. */
    public BlockRow {
        if (blockBytes < 1 || strideBytes < blockBytes || count < 1 || deviceId < 0) {
            throw new IllegalArgumentException(
                    "block row: needs blockBytes >= 1, strideBytes >= blockBytes, count >= 1 and deviceId >= 0, but"
                            + " blockBytes="
                            + blockBytes
                            + " strideBytes="
                            + strideBytes
                            + " count="
                            + count
                            + " deviceId="
                            + deviceId);
        }
        long span = Math.addExact(Math.multiplyExact(strideBytes, count - 1L), blockBytes);
        if (address <= 0 || address > Long.MAX_VALUE - span) {
            throw new IllegalArgumentException(
                    "block row: address 0x"
                            + Long.toHexString(address)
                            + " with span "
                            + span
                            + " is not addressable");
        }
    }

    /** From the first block's start to the last one's end. */
    public long spanBytes() {
        return strideBytes * (count - 1L) + blockBytes;
    }
}
