package dev.dormouse.memory;

import dev.dormouse.cuda.Cleanup;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.PinnedMemory;
import java.util.ArrayList;
import java.util.List;

/**
 * Device memory copied to pinned host memory, chunk by chunk: pinning the next chunk, which takes
 * the host longer than the copy takes the bus, goes on while the last one is copied.
 */
final class PinnedBackup implements HostBackup {
    private static final long CHUNK_BYTES = 256L << 20;

    private final List<PinnedMemory> chunks = new ArrayList<>();
    private final long lengthBytes;

    private PinnedBackup(long lengthBytes) {
        this.lengthBytes = lengthBytes;
    }

    /**
     * Copies a span.
     *
     * @throws dev.dormouse.cuda.CudaException if the host has no room, or the copy fails; nothing
     *     is kept then
     */
    static PinnedBackup of(CudaContext context, DeviceSpan source) {
        PinnedBackup backup = new PinnedBackup(source.lengthBytes());
        try (CudaStream stream = CudaStream.create(context)) {
            for (long offset = 0; offset < source.lengthBytes(); offset += CHUNK_BYTES) {
                long length = Math.min(CHUNK_BYTES, source.lengthBytes() - offset);
                PinnedMemory chunk = PinnedMemory.allocate(context, length);
                backup.chunks.add(chunk);
                stream.copyToHost(source.slice(offset, length), chunk, 0);
            }
            stream.synchronize();
        } catch (RuntimeException e) {
            closeAfter(backup, e);
            throw e;
        }
        return backup;
    }

    /** Copies the content back. */
    void restore(CudaContext context, DeviceSpan target) {
        if (target.lengthBytes() != lengthBytes) {
            throw new IllegalArgumentException(
                    "restore %d bytes into %d refused"
                            .formatted(lengthBytes, target.lengthBytes()));
        }
        try (CudaStream stream = CudaStream.create(context)) {
            long offset = 0;
            for (PinnedMemory chunk : chunks) {
                long length = chunk.segment().byteSize();
                stream.copyToDevice(chunk, 0, target.slice(offset, length));
                offset += length;
            }
            stream.synchronize();
        }
    }

    @Override
    public long lengthBytes() {
        return lengthBytes;
    }

    @Override
    public void close() {
        Cleanup cleanup = new Cleanup();
        for (PinnedMemory chunk : chunks) {
            cleanup.run(chunk::close);
        }
        chunks.clear();
        cleanup.rethrow();
    }

    private static void closeAfter(PinnedBackup backup, RuntimeException failure) {
        try {
            backup.close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }
}
