package dev.dormouse.memory;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.MemoryFile;
import java.lang.foreign.MemorySegment;

/** Host pages from Linux. */
final class LibcPageCalls implements PageCalls {
    private static final int READ_WRITE = Libc.PROT_READ | Libc.PROT_WRITE;
    private static final int NO_PAGES = Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS | Libc.MAP_NORESERVE;
    private static final int FIXED_LENGTH =
            MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW | MemoryFile.F_SEAL_SEAL;
    private static final int NO_FILE = -1;

    private final long pageSizeBytes = Libc.pageSizeBytes();

    @Override
    public long pageSizeBytes() {
        return pageSizeBytes;
    }

    @Override
    public long allocatableBytes() {
        return SystemMemory.read().allocatableBytes();
    }

    @Override
    public MemorySegment reserve(long lengthBytes) {
        return Libc.map(lengthBytes, READ_WRITE, NO_PAGES, NO_FILE, 0);
    }

    @Override
    public void mapSleeping(MemorySegment range) {
        Libc.mapOver(range, READ_WRITE, NO_PAGES, NO_FILE, 0);
    }

    @Override
    public int createFile(String name) {
        return Libc.createMemoryFile(name, Libc.MFD_CLOEXEC | Libc.MFD_ALLOW_SEALING);
    }

    @Override
    public void allocate(int file, long offsetBytes, long lengthBytes) {
        Libc.allocate(file, 0, offsetBytes, lengthBytes);
    }

    @Override
    public void seal(int file) {
        MemoryFile.seal(file, FIXED_LENGTH);
    }

    @Override
    public int duplicate(int file) {
        return MemoryFile.duplicate(file);
    }

    @Override
    public void mapFile(MemorySegment range, int file) {
        Libc.mapOver(range, READ_WRITE, Libc.MAP_SHARED, file, 0);
    }

    @Override
    public void populate(MemorySegment range) {
        if (!Libc.adviseIfKnown(range, Libc.MADV_POPULATE_WRITE)) { // Linux before 5.14
            touchEachPage(range, pageSizeBytes);
        }
    }

    /** For pages that the file has already, and that hold nothing yet. */
    static void touchEachPage(MemorySegment range, long pageSizeBytes) {
        for (long offset = 0; offset < range.byteSize(); offset += pageSizeBytes) {
            range.set(JAVA_BYTE, offset, (byte) 0);
        }
    }

    @Override
    public void unmap(MemorySegment range) {
        Libc.unmap(range);
    }

    @Override
    public void closeFile(int file) {
        Libc.close(file);
    }
}
