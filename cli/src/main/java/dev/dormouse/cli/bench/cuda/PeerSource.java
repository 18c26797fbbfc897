package dev.dormouse.cli.bench.cuda;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.DeviceBuffer;

/** Memory on the owner's GPU from which a reader on another one copies plainly, for comparison. */
record PeerSource(CudaContext context, DeviceBuffer buffer) implements AutoCloseable {
    /**
     * Takes the memory and lets the reader's GPU reach it.
     *
     * @param reader stays the caller's
     */
    static PeerSource open(CudaContext reader, long bytes) {
        CudaContext context = DeviceSide.context(DeviceSide.OWNER_DEVICE);
        try {
            PeerSource source = new PeerSource(context, DeviceBuffer.allocate(context, bytes));
            try {
                reader.enablePeerAccess(context);
                return source;
            } catch (RuntimeException e) {
                source.buffer.close();
                throw e;
            }
        } catch (RuntimeException e) {
            context.close();
            throw e;
        }
    }

    @Override
    public void close() {
        buffer.close();
        context.close();
    }
}
