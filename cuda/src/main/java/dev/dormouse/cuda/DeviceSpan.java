package dev.dormouse.cuda;

import java.util.Objects;

/**
 * A range of addresses that a GPU understands. It owns nothing: who made the memory keeps it mapped
 * as long as the span is in use. An access beyond what is mapped ends the process's use of the GPU.
 *
 * @param address the first byte's
 * @param lengthBytes more than 0
 */
public record DeviceSpan(long address, long lengthBytes) {
    /** Refuses an empty range, a null address, and a range beyond the last address. */
    public DeviceSpan {
        if (address <= 0 || lengthBytes <= 0 || address > Long.MAX_VALUE - lengthBytes) {
            throw new IllegalArgumentException(
                    "device span refused: address=0x%x lengthBytes=%d"
                            .formatted(address, lengthBytes));
        }
    }

    /** A part of it. */
    public DeviceSpan slice(long offsetBytes, long sliceBytes) {
        Objects.checkFromIndexSize(offsetBytes, sliceBytes, lengthBytes);
        return new DeviceSpan(address + offsetBytes, sliceBytes);
    }

    /** As {@code [0x7f0000000000, +4096)}. */
    @Override
    public String toString() {
        return "[0x%x, +%d)".formatted(address, lengthBytes);
    }
}
