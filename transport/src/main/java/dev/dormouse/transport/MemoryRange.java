package dev.dormouse.transport;

/**
 * A range of this process's memory.
 *
 * @param address virtual address
 * @param lengthBytes length
 * @param kind where the memory lies
 * @param deviceId the device's ordinal; for host memory 0, or what the transport made of it
 */
public record MemoryRange(long address, long lengthBytes, MemoryKind kind, int deviceId) {
    /** Checks that the range is not empty and addressable. */
    public MemoryRange {
        if (address <= 0
                || lengthBytes < 1
                || address > Long.MAX_VALUE - lengthBytes
                || deviceId < 0) {
            throw new IllegalArgumentException(
                    "memory range: address 0x"
                            + Long.toHexString(address)
                            + " length "
                            + lengthBytes
                            + " device "
                            + deviceId
                            + " is not a range of this process");
        }
    }
}
