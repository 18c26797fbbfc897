package dev.dormouse.memory;

/**
 * One tag's addresses on a GPU and the physical memory under them, so that a test can let each step
 * fail. Each call but the first two throws {@link dev.dormouse.cuda.CudaException}.
 */
interface DevicePages extends AutoCloseable {
    /** The first byte's address, for the life of the range. */
    long address();

    /** Addresses reserved, in whole granules. */
    long lengthBytes();

    /** What the device could still give. */
    long freeBytes();

    /** Puts fresh memory under all addresses; if that fails, under none. */
    void map();

    /**
     * Gives all memory back, after what the device was asked to do has ended.
     *
     * @throws dev.dormouse.cuda.CudaException if some of it stays; all of it was tried
     */
    void unmap();

    /** True if there is memory under all addresses. */
    boolean isWhole();

    /**
     * Copies all content to host memory.
     *
     * @throws MemoryException if the host has no room
     */
    HostBackup backUp();

    /** Copies a backup's content into the memory. */
    void restore(HostBackup backup);

    /** Descriptors of the memory that is there now. */
    DeviceExport export();

    /** Gives memory and addresses back. */
    @Override
    void close();
}
