package dev.dormouse.transport;

import java.util.List;

/** Memory that a transport may read from and write to, until closed. Closing unpins the pages. */
public interface Registration extends AutoCloseable {
    /** The registered ranges. */
    List<MemoryRange> ranges();

    /**
     * Deregisters. Idempotent.
     *
     * @throws TransportException if the memory stays registered
     * @throws IllegalStateException if prepared lists over this memory still exist
     */
    @Override
    void close();
}
