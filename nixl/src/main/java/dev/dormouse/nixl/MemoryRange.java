package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;

/**
 * Local memory to register.
 *
 * @param segment native memory, not empty; for {@link MemoryType#VRAM} a segment made of the device
 *     address, which Java code must not touch
 * @param deviceId see {@link MemoryType}; not negative. In host memory a fresh number per
 *     registration, as an epoch, lets a peer load the new keys beside the old ones
 */
public record MemoryRange(MemorySegment segment, long deviceId) {
    /** Checks both. */
    public MemoryRange {
        if (!segment.isNative() || segment.byteSize() <= 0 || segment.address() <= 0) {
            throw new IllegalArgumentException(
                    "memory range refused: not native, empty or without address: " + segment);
        }
        if (deviceId < 0) {
            throw new IllegalArgumentException(
                    "memory range refused: deviceId=" + deviceId + " is negative");
        }
    }

    /** A range of host memory under device id 0. */
    public static MemoryRange host(MemorySegment segment) {
        return new MemoryRange(segment, 0);
    }

    long address() {
        return segment.address();
    }

    long lengthBytes() {
        return segment.byteSize();
    }

    @Override
    public String toString() {
        return "0x%x+%d/device %d".formatted(address(), lengthBytes(), deviceId);
    }
}
