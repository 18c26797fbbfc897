package dev.dormouse.transport;

/** A loaded remote agent: its connection and the keys of its memory as they were when loaded. */
public interface RemotePeer extends AutoCloseable {
    /** The peer's agent name, as its metadata says. */
    String agentName();

    /** False once the transport has found the peer disconnected or its metadata gone. */
    boolean isConnected();

    /** How its memory is reached; the same from the load to the close. */
    Route route();

    /**
     * Drops the peer. Idempotent.
     *
     * @throws IllegalStateException if prepared lists of this peer still exist
     */
    @Override
    void close();
}
