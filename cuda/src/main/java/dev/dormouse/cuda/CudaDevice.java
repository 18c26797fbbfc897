package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.UUID;

/**
 * A GPU and what it can do.
 *
 * @param ordinal its number in this process, which {@code CUDA_VISIBLE_DEVICES} decides
 * @param name as {@code NVIDIA H200}
 * @param uuid the same in every process and in NVML
 * @param totalBytes its memory
 * @param computeCapability its generation
 * @param hasVirtualMemory whether {@link AddressRange} and {@link PhysicalMemory} work
 * @param exportsFileDescriptors whether {@link PhysicalMemory#export} works
 * @param supportsGpuDirectRdma whether a network card can reach {@link PhysicalMemory}
 */
public record CudaDevice(
        int ordinal,
        String name,
        UUID uuid,
        long totalBytes,
        ComputeCapability computeCapability,
        boolean hasVirtualMemory,
        boolean exportsFileDescriptors,
        boolean supportsGpuDirectRdma) {
    /** Whether kernels on this device can reach the other device's memory. */
    public boolean canAccess(CudaDevice peer) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(JAVA_INT);
            int device = CudaDriver.handle(ordinal);
            int other = CudaDriver.handle(peer.ordinal);
            CudaApi.call(
                    "cuDeviceCanAccessPeer",
                    () -> (int) CudaApi.DEVICE_CAN_ACCESS_PEER.invokeExact(answer, device, other),
                    () -> "device=" + ordinal + " peer=" + peer.ordinal);
            return answer.get(JAVA_INT, 0) != 0;
        }
    }
}
