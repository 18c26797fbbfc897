package dev.dormouse.memory;

import dev.dormouse.cuda.Cleanup;
import dev.dormouse.cuda.CudaException;
import dev.dormouse.cuda.DeviceSpan;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The device memory of one tag. */
final class DeviceTagMemory {
    private final MemoryTag tag;
    private final DevicePages pages;
    private volatile Residency residency = Residency.ASLEEP;
    private @Nullable HostBackup backup;

    DeviceTagMemory(MemoryTag tag, DevicePages pages) {
        this.tag = tag;
        this.pages = pages;
    }

    MemoryTag tag() {
        return tag;
    }

    Residency residency() {
        return residency;
    }

    long address() {
        return pages.address();
    }

    long lengthBytes() {
        return pages.lengthBytes();
    }

    long freeBytes() {
        return pages.freeBytes();
    }

    /** Host memory that the content takes while it sleeps. */
    long backupBytes() {
        return backup == null ? 0 : backup.lengthBytes();
    }

    /** From AWAKE to ASLEEP. A failure leaves it AWAKE with its content, or LOST. */
    void sleep(Retention retention) {
        try {
            backup = retention == Retention.KEEP_ON_HOST ? pages.backUp() : null;
        } catch (CudaException e) {
            throw failed("sleep", e);
        }
        try {
            pages.unmap();
        } catch (CudaException e) {
            if (pages.isWhole()) {
                forgetBackup(e);
            } else {
                become(Residency.LOST);
            }
            throw failed("sleep", e);
        }
        become(Residency.ASLEEP);
    }

    /** From ASLEEP to AWAKE. A failure leaves it ASLEEP with its backup, or LOST. */
    void wake() {
        try {
            pages.map();
        } catch (CudaException e) {
            throw wakeFailed(e);
        }
        HostBackup content = backup;
        if (content != null) {
            try {
                pages.restore(content);
            } catch (RuntimeException e) {
                unmapAfter(e);
                throw e instanceof CudaException refused ? wakeFailed(refused) : e;
            }
        }
        become(Residency.AWAKE);
        dropBackup();
    }

    /** Addresses for kernels and copies, until the next sleep. */
    DeviceSpan span() {
        requireAwake("use");
        return new DeviceSpan(pages.address(), pages.lengthBytes());
    }

    DeviceExport export() {
        requireAwake("export");
        try {
            return pages.export();
        } catch (CudaException e) {
            throw failed("export", e);
        }
    }

    /** Gives everything back, what was not given back before, too. */
    void close() {
        become(Residency.CLOSED);
        Cleanup cleanup = new Cleanup();
        cleanup.run(pages::close);
        cleanup.run(this::dropBackup);
        try {
            cleanup.rethrow();
        } catch (CudaException e) {
            throw failed("close", e);
        }
    }

    /** How a refusal of an operation on lost memory reads. */
    MemoryException lost(String operation) {
        return new MemoryException(
                "%s refused: %s on the device is lost, parts of it could not be unmapped; restart the process"
                        .formatted(operation, tag.label()));
    }

    private void requireAwake(String operation) {
        switch (residency) {
            case AWAKE -> {}
            case ASLEEP ->
                    throw new MemoryException(
                            "%s %s on the device refused: it is asleep; wake it first"
                                    .formatted(operation, tag.label()));
            case LOST -> throw lost(operation);
            case CLOSED ->
                    throw new IllegalStateException(
                            "%s %s on the device refused: it is closed"
                                    .formatted(operation, tag.label()));
        }
    }

    private void unmapAfter(RuntimeException failure) {
        try {
            pages.unmap();
        } catch (CudaException e) {
            failure.addSuppressed(e);
            become(Residency.LOST);
        }
    }

    private void forgetBackup(CudaException failure) {
        try {
            dropBackup();
        } catch (MemoryException e) {
            failure.addSuppressed(e);
        }
    }

    private void dropBackup() {
        HostBackup dropped = backup;
        backup = null;
        if (dropped != null) {
            dropped.close();
        }
    }

    private MemoryException wakeFailed(CudaException e) {
        return e.isOutOfMemory() && residency == Residency.ASLEEP
                ? new NotEnoughMemoryException(Set.of(tag), lengthBytes(), pages.freeBytes(), e)
                : failed("wake", e);
    }

    private MemoryException failed(String operation, CudaException e) {
        return new MemoryException(
                "%s %s on the device failed, it is now %s: %s"
                        .formatted(operation, tag.label(), residency, e.getMessage()),
                e);
    }

    private void become(Residency next) {
        if (!residency.canBecome(next)) {
            throw new AssertionError(tag.label() + " cannot go from " + residency + " to " + next);
        }
        residency = next;
    }
}
