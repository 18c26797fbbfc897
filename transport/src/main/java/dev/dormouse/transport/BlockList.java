package dev.dormouse.transport;

/** A prepared list of equal or unequal blocks, addressed by index. */
public interface BlockList extends AutoCloseable {
    /** How many blocks it has. */
    int size();

    /**
     * Releases the list. Idempotent.
     *
     * @throws IllegalStateException if a transfer still uses it
     */
    @Override
    void close();
}
