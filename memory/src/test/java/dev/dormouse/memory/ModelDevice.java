package dev.dormouse.memory;

import dev.dormouse.cuda.CudaException;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** A GPU of a few bytes: physical memory that is counted, host memory for backups, and faults. */
final class ModelDevice {
    /** What can fail. */
    enum Step {
        RESERVE,
        MAP,
        UNMAP,
        UNMAP_HALF,
        BACK_UP,
        RESTORE,
        EXPORT,
        CLOSE
    }

    static final long GRANULE_BYTES = 8;

    private final Map<Step, Integer> failures = new EnumMap<>(Step.class);
    private long freeBytes;
    private long backupBytes;
    private long nextAddress = 0x1000;
    private int openRanges;

    ModelDevice(long totalBytes) {
        freeBytes = totalBytes;
    }

    /** Lets a step fail the next so many times. */
    void fail(Step step, int times) {
        failures.put(step, times);
    }

    long freeBytes() {
        return freeBytes;
    }

    long backupBytes() {
        return backupBytes;
    }

    int openRanges() {
        return openRanges;
    }

    DevicePages reserve(long lengthBytes) {
        attempt(Step.RESERVE);
        long length = Math.ceilDiv(lengthBytes, GRANULE_BYTES) * GRANULE_BYTES;
        Pages pages = new Pages(nextAddress, length);
        nextAddress += 2 * length;
        openRanges++;
        return pages;
    }

    private void attempt(Step step) {
        int left = failures.getOrDefault(step, 0);
        if (left > 0) {
            failures.put(step, left - 1);
            throw failure(step.name(), "CUDA_ERROR_UNKNOWN");
        }
    }

    private static CudaException failure(String call, String error) {
        return new CudaException(call, "a model", 1, error, "as planned", "none");
    }

    private final class Backup implements HostBackup {
        private byte[] content;

        Backup(byte[] content) {
            this.content = content;
            backupBytes += content.length;
        }

        @Override
        public long lengthBytes() {
            return content.length;
        }

        @Override
        public void close() {
            backupBytes -= content.length;
            content = new byte[0];
        }
    }

    /** One range; {@link #content} is null while nothing lies under it. */
    final class Pages implements DevicePages {
        private final long address;
        private final int length;
        private int mappedBytes;
        private byte[] content = new byte[0];
        private boolean closed;

        private Pages(long address, long length) {
            this.address = address;
            this.length = (int) length;
        }

        /** The bytes as a kernel sees them. */
        byte[] content() {
            return content;
        }

        @Override
        public long address() {
            return address;
        }

        @Override
        public long lengthBytes() {
            return length;
        }

        @Override
        public long freeBytes() {
            return freeBytes;
        }

        @Override
        public void map() {
            if (mappedBytes != 0 || closed) {
                throw new AssertionError("mapped twice, or after close");
            }
            attempt(Step.MAP);
            if (length > freeBytes) {
                throw failure("cuMemCreate", "CUDA_ERROR_OUT_OF_MEMORY");
            }
            take(length);
            content = new byte[length];
        }

        @Override
        public void unmap() {
            attempt(Step.UNMAP);
            try {
                attempt(Step.UNMAP_HALF);
            } catch (CudaException e) {
                take(-mappedBytes / 2);
                throw e;
            }
            take(-mappedBytes);
            content = new byte[0];
        }

        @Override
        public boolean isWhole() {
            return mappedBytes == length;
        }

        @Override
        public HostBackup backUp() {
            attempt(Step.BACK_UP);
            return new Backup(content.clone());
        }

        @Override
        public void restore(HostBackup backup) {
            attempt(Step.RESTORE);
            System.arraycopy(((Backup) backup).content, 0, content, 0, length);
        }

        @Override
        public DeviceExport export() {
            attempt(Step.EXPORT);
            return new DeviceExport(List.of());
        }

        @Override
        public void close() {
            if (closed) {
                throw new AssertionError("closed twice");
            }
            closed = true;
            openRanges--;
            take(-mappedBytes);
            attempt(Step.CLOSE);
        }

        private void take(int bytes) {
            mappedBytes += bytes;
            freeBytes -= bytes;
        }
    }
}
