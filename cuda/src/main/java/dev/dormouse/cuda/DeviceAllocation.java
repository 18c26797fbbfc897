package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * What the driver knows of device memory, whoever in this process made it.
 *
 * @param span addresses of one allocation
 * @param isRemappable whether it was made by {@code cuMemCreate}, as {@link PhysicalMemory} is, so
 *     that other memory can come under its addresses
 */
public record DeviceAllocation(DeviceSpan span, boolean isRemappable) {
    /**
     * The allocations behind a range, cut to it, in the order of their addresses.
     *
     * @param span mapped as a whole
     * @throws CudaException when an address is not the device's
     */
    public static List<DeviceAllocation> behind(CudaContext context, DeviceSpan span) {
        context.makeCurrent("query allocations");
        List<DeviceAllocation> allocations = new ArrayList<>();
        long end = span.address() + span.lengthBytes();
        long address = span.address();
        while (address < end) {
            long next = Math.min(end, endOf(address));
            allocations.add(
                    new DeviceAllocation(
                            new DeviceSpan(address, next - address), isRemappable(address)));
            address = next;
        }
        return allocations;
    }

    /** Of mapped memory the driver tells one piece, not all that lie side by side. */
    private static long endOf(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment base = arena.allocate(JAVA_LONG);
            MemorySegment length = arena.allocate(JAVA_LONG);
            CudaApi.call(
                    "cuMemGetAddressRange",
                    () -> (int) CudaApi.MEM_GET_ADDRESS_RANGE.invokeExact(base, length, address),
                    () -> "address=0x%x".formatted(address));
            long end = base.get(JAVA_LONG, 0) + length.get(JAVA_LONG, 0);
            if (end <= address) {
                throw new IllegalStateException(
                        "query allocations failed: the driver says that 0x%x lies before 0x%x"
                                .formatted(address, end));
            }
            return end;
        }
    }

    /** Other memory has no such handle, which is an answer and no failure. */
    private static boolean isRemappable(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(JAVA_LONG);
            NativeCall retain = () -> (int) CudaApi.MEM_RETAIN_HANDLE.invokeExact(handle, address);
            if (retain.status() != CudaApi.SUCCESS) {
                return false;
            }
            long retained = handle.get(JAVA_LONG, 0);
            CudaApi.call(
                    "cuMemRelease",
                    () -> (int) CudaApi.MEM_RELEASE.invokeExact(retained),
                    () -> "address=0x%x".formatted(address));
            return true;
        }
    }
}
