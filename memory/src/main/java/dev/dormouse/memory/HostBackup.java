package dev.dormouse.memory;

/** The content of a tag's device memory, in host memory. */
interface HostBackup extends AutoCloseable {
    /** How much host memory it takes. */
    long lengthBytes();

    /**
     * Gives the host memory back. Idempotent.
     *
     * @throws MemoryException if some of it stays
     */
    @Override
    void close();
}
