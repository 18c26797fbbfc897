package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * The structs of virtual memory management, as in {@code cuda.h} of CUDA 12.9 (lines 4176, 4203 and
 * 4275); a test holds them against the C compiler and, where it is installed, the header.
 */
final class MemoryLayouts {
    static final int ALLOCATION_TYPE_PINNED = 1;
    static final int LOCATION_TYPE_DEVICE = 1;
    static final int HANDLE_TYPE_NONE = 0;
    static final int HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1;
    static final int GRANULARITY_MINIMUM = 0;

    /** CUmemLocation: 8 bytes. */
    static final StructLayout LOCATION =
            MemoryLayout.structLayout(JAVA_INT.withName("type"), JAVA_INT.withName("id"));

    /** CUmemAccessDesc: 12 bytes. */
    static final StructLayout ACCESS =
            MemoryLayout.structLayout(LOCATION.withName("location"), JAVA_INT.withName("flags"));

    /** CUmemAllocationProp: 32 bytes. */
    static final StructLayout ALLOCATION =
            MemoryLayout.structLayout(
                    JAVA_INT.withName("type"),
                    JAVA_INT.withName("requestedHandleTypes"),
                    LOCATION.withName("location"),
                    ADDRESS.withName("win32HandleMetaData"),
                    MemoryLayout.structLayout(
                                    JAVA_BYTE.withName("compressionType"),
                                    JAVA_BYTE.withName("gpuDirectRDMACapable"),
                                    JAVA_SHORT.withName("usage"),
                                    MemoryLayout.sequenceLayout(4, JAVA_BYTE).withName("reserved"))
                            .withName("allocFlags"));

    private static final long ACCESS_TYPE = offset(ACCESS, "location", "type");
    private static final long ACCESS_ID = offset(ACCESS, "location", "id");
    private static final long ACCESS_FLAGS = offset(ACCESS, "flags");
    private static final long TYPE = offset(ALLOCATION, "type");
    private static final long HANDLE_TYPES = offset(ALLOCATION, "requestedHandleTypes");
    private static final long LOCATION_TYPE = offset(ALLOCATION, "location", "type");
    private static final long LOCATION_ID = offset(ALLOCATION, "location", "id");
    private static final long RDMA = offset(ALLOCATION, "allocFlags", "gpuDirectRDMACapable");

    private MemoryLayouts() {}

    /** Memory of the device that can be exported and reached by a network card where possible. */
    static MemorySegment allocation(Arena arena, CudaDevice device) {
        MemorySegment properties = arena.allocate(ALLOCATION);
        properties.set(JAVA_INT, TYPE, ALLOCATION_TYPE_PINNED);
        properties.set(
                JAVA_INT,
                HANDLE_TYPES,
                device.exportsFileDescriptors()
                        ? HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                        : HANDLE_TYPE_NONE);
        properties.set(JAVA_INT, LOCATION_TYPE, LOCATION_TYPE_DEVICE);
        properties.set(JAVA_INT, LOCATION_ID, device.ordinal());
        properties.set(JAVA_BYTE, RDMA, (byte) (device.supportsGpuDirectRdma() ? 1 : 0));
        return properties;
    }

    /** What one device may do. */
    static MemorySegment access(Arena arena, CudaDevice device, MemoryAccess access) {
        MemorySegment description = arena.allocate(ACCESS);
        description.set(JAVA_INT, ACCESS_TYPE, LOCATION_TYPE_DEVICE);
        description.set(JAVA_INT, ACCESS_ID, device.ordinal());
        description.set(JAVA_INT, ACCESS_FLAGS, access.flags);
        return description;
    }

    private static long offset(StructLayout layout, String... path) {
        PathElement[] elements = new PathElement[path.length];
        for (int i = 0; i < path.length; i++) {
            elements[i] = PathElement.groupElement(path[i]);
        }
        return layout.byteOffset(elements);
    }
}
