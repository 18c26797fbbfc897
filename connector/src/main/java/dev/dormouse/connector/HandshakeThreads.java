package dev.dormouse.connector;

/** Where handshakes wait for peers. */
@FunctionalInterface
public interface HandshakeThreads {
    /**
     * Runs a handshake with the peer at {@code address}, soon.
     *
     * @throws java.util.concurrent.RejectedExecutionException if too many are pending
     */
    void execute(SideChannelAddress address, Runnable handshake);
}
