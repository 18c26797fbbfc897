package dev.dormouse.cuda;

/** What a device may do with mapped memory, with the numbers of CUmemAccess_flags. */
public enum MemoryAccess {
    /** Kernels and copies may read. */
    READ(0x1),
    /** Kernels and copies may read and write. */
    READ_WRITE(0x3);

    final int flags;

    MemoryAccess(int flags) {
        this.flags = flags;
    }
}
