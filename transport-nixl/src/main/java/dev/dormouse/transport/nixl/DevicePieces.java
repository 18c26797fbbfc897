package dev.dormouse.transport.nixl;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.CudaException;
import dev.dormouse.cuda.DeviceAllocation;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Finds the pieces of physical memory behind device addresses. UCX takes a registration for one
 * allocation: of several ({@code cuMemCreate} pieces side by side) it hands out the first one's
 * handle and, before openucx/ucx pull request 11461, registers only that with network cards.
 */
final class DevicePieces {
    private static final Logger LOGGER = System.getLogger("dormouse.transport.nixl");

    /** What was warned of; a range that sleeps and wakes is registered again and again. */
    private final Set<MemoryRange> warned = new HashSet<>();

    private final Consumer<String> warnings;

    /**
     * @param warnings get what an operator must know
     */
    DevicePieces(Consumer<String> warnings) {
        this.warnings = warnings;
    }

    /**
     * A range piece by piece, in the order of addresses; as it is if it lies in host memory, or
     * this machine's CUDA driver does not know it.
     */
    List<MemoryRange> of(MemoryRange range) {
        if (range.kind() == MemoryKind.DRAM) {
            return List.of(range);
        }
        List<DeviceAllocation> allocations;
        try (CudaContext context = CudaContext.retain(CudaDriver.load().device(range.deviceId()))) {
            allocations =
                    DeviceAllocation.behind(
                            context, new DeviceSpan(range.address(), range.lengthBytes()));
        } catch (NativeLibraryException | CudaException e) {
            LOGGER.log(
                    Level.DEBUG,
                    "register device memory as one piece, CUDA does not tell its pieces: {0}",
                    e.getMessage());
            return List.of(range);
        }
        if (allocations.stream().anyMatch(DeviceAllocation::isRemappable) && warned.add(range)) {
            warnings.accept(warning(range));
        }
        return allocations.stream()
                .map(
                        allocation ->
                                new MemoryRange(
                                        allocation.span().address(),
                                        allocation.span().lengthBytes(),
                                        range.kind(),
                                        range.deviceId()))
                .toList();
    }

    /** Figures: NIXL 1.5.1 with its UCX between two processes of one H200. */
    private static String warning(MemoryRange range) {
        return ("GPU memory that can be unmapped is registered with NIXL: without RDMA between the peers it moves at about 0.5 GB/s,"
                        + " since UCX's cuda_ipc cannot open handles of cuMemCreate memory and falls back to software emulation over tcp;"
                        + " between processes of one host use --kv-transport auto or local; address=0x%x bytes=%d gpu=%d")
                .formatted(range.address(), range.lengthBytes(), range.deviceId());
    }
}
