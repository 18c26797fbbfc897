package dev.dormouse.memory;

import dev.dormouse.cuda.Cleanup;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.foreign.HugePages;
import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import java.lang.foreign.MemorySegment;

/**
 * Device memory's content in ordinary host memory, in huge pages where Linux has them. All of it is
 * one mapping, whose pages many threads touch first, and give back, at the same time.
 */
final class KeptContent implements HostBackup {
    private final StagingRing ring;
    private final HugePages pages;
    private final MemorySegment content;
    private boolean open = true;

    private KeptContent(StagingRing ring, HugePages pages) {
        this.ring = ring;
        this.pages = pages;
        this.content = pages.segment();
    }

    /**
     * Copies a span.
     *
     * @param ring to be closed after this
     * @throws MemoryException if the host has no room
     * @throws dev.dormouse.cuda.CudaException if the copy fails. Nothing is kept after either
     */
    static KeptContent of(StagingRing ring, DeviceSpan source) {
        KeptContent kept = map(ring, source.lengthBytes());
        try {
            ring.copyToHost(source, kept::write);
        } catch (RuntimeException e) {
            RuntimeException failure =
                    e instanceof LibcException refused ? noRoom(source.lengthBytes(), refused) : e;
            kept.closeAfter(failure);
            throw failure;
        }
        return kept;
    }

    private static KeptContent map(StagingRing ring, long lengthBytes) {
        try {
            return new KeptContent(ring, HugePages.map(lengthBytes));
        } catch (LibcException e) {
            throw noRoom(lengthBytes, e);
        }
    }

    /** Copies the content back, of which nothing goes. */
    void restore(DeviceSpan target) {
        if (!open || target.lengthBytes() != content.byteSize()) {
            throw new IllegalArgumentException(
                    "restore %d bytes into %d refused"
                            .formatted(lengthBytes(), target.lengthBytes()));
        }
        ring.copyToDevice(this::read, target);
    }

    /** Page by page: what the kernel has just cleared is in the core's cache when it is written. */
    private void write(long offsetBytes, MemorySegment staged) {
        for (long done = 0; done < staged.byteSize(); done += HugePages.PAGE_BYTES) {
            long length = Math.min(HugePages.PAGE_BYTES, staged.byteSize() - done);
            MemorySegment page = content.asSlice(offsetBytes + done, length);
            boolean _ = Libc.adviseIfKnown(page, Libc.MADV_POPULATE_WRITE);
            page.copyFrom(staged.asSlice(done, length));
        }
    }

    private void read(long offsetBytes, MemorySegment staged) {
        staged.copyFrom(content.asSlice(offsetBytes, staged.byteSize()));
    }

    private static MemoryException noRoom(long lengthBytes, LibcException e) {
        return new MemoryException(
                "keep %d bytes of device memory on the host failed: %s; free host memory or discard the content"
                        .formatted(lengthBytes, e.getMessage()),
                e);
    }

    @Override
    public long lengthBytes() {
        return open ? content.byteSize() : 0;
    }

    /**
     * Threads give the pages back beside each other first: to unmap them keeps one busy for long.
     */
    @Override
    public void close() {
        if (!open) {
            return;
        }
        open = false;
        Cleanup cleanup = new Cleanup();
        cleanup.run(() -> ring.forEachPart(content.byteSize(), this::drop));
        cleanup.run(pages::close);
        try {
            cleanup.rethrow();
        } catch (LibcException e) {
            throw new MemoryException(
                    "give back %d bytes of host memory failed: %s"
                            .formatted(content.byteSize(), e.getMessage()),
                    e);
        }
    }

    private void drop(long offsetBytes, long lengthBytes) {
        MemorySegment part = content.asSlice(offsetBytes, lengthBytes);
        boolean _ = Libc.adviseIfKnown(part, Libc.MADV_DONTNEED); // refused, it costs time only
    }

    private void closeAfter(RuntimeException failure) {
        try {
            close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }
}
