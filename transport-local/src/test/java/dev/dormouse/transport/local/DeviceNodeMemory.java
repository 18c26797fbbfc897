package dev.dormouse.transport.local;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.PinnedMemory;
import dev.dormouse.memory.DeviceMemory;
import dev.dormouse.memory.Retention;
import dev.dormouse.transport.MemoryKind;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** Memory of the first device, in pieces that blocks lie across. */
final class DeviceNodeMemory implements NodeMemory {
    private static final long PIECE_BYTES = 6L << 20;

    private final CudaContext context = DeviceNode.context();
    private final DeviceMemory memory =
            DeviceMemory.reserve(
                    context, Map.of(DeviceNode.TAG, BYTES), PIECE_BYTES, System::nanoTime);
    private final PinnedMemory host = PinnedMemory.allocate(context, BYTES);
    private final CudaStream stream = CudaStream.create(context);
    private final LocalDevice device;
    private long ownObjects;

    DeviceNodeMemory(Path kernels) {
        device = DeviceNode.device(context, kernels);
    }

    @Override
    public MemoryKind kind() {
        return MemoryKind.VRAM;
    }

    @Override
    public long address() {
        return memory.address(DeviceNode.TAG);
    }

    @Override
    public LocalTransportOptions options() {
        return LocalTransportOptions.of(range -> DeviceNode.backing(context, memory, range))
                .withDevice(device);
    }

    @Override
    public void write(Consumer<MemorySegment> content) {
        content.accept(host.segment());
        stream.copyToDevice(host, 0, memory.span(DeviceNode.TAG));
        stream.synchronize();
    }

    @Override
    public void read(Consumer<MemorySegment> content) {
        stream.copyToHost(memory.span(DeviceNode.TAG), host, 0);
        stream.synchronize();
        content.accept(host.segment());
    }

    @Override
    public void sleep() {
        memory.sleep(Set.of(DeviceNode.TAG), Retention.DISCARD);
    }

    @Override
    public void wake() {
        memory.wake(Set.of(DeviceNode.TAG));
        stream.fill(memory.span(DeviceNode.TAG), (byte) 0xa5);
        stream.synchronize();
    }

    @Override
    public long freeBytes() {
        return context.memoryInfo().freeBytes();
    }

    /** What the transport had before it had peers is told by the first call. */
    @Override
    public long peerMappings() {
        if (ownObjects == 0) {
            ownObjects = context.liveObjects();
        }
        return context.liveObjects() - ownObjects;
    }

    @Override
    public void close() {
        stream.close();
        host.close();
        memory.close();
        context.close();
    }
}
