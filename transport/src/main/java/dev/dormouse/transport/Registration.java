package dev.dormouse.transport;

import java.util.List;

/** Memory that a transport may read from and write to, until closed. Closing unpins the pages. */
public interface Registration extends AutoCloseable {
    /**
     * The registered ranges. In host memory their device id may be another than was asked for: it
     * is the one that rows name, here and at peers.
     */
    List<MemoryRange> ranges();

    /**
     * Asks the peers that use the memory without the owner's doing to end that, and lets no further
     * one begin. To be asked again until nobody is left: what they hold, {@link #close} would leave
     * pinned. The call does not wait. Local use goes on.
     *
     * @return who still uses the memory, such as an agent and its process, for messages; empty if
     *     nobody does, and always for a transport whose peers hold nothing
     */
    List<String> revoke();

    /** Lets peers use the memory again, after a {@link #revoke} that no {@link #close} followed. */
    void readmit();

    /**
     * Deregisters. Idempotent. Peers must have been {@link #revoke revoked} before, if any use the
     * memory.
     *
     * @throws TransportException if the memory stays registered, or a peer still uses it
     * @throws IllegalStateException if prepared lists over this memory still exist
     */
    @Override
    void close();
}
