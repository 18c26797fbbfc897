package dev.dormouse.transport.local;

import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.SocketMessage;

/**
 * The memory through which one agent's threads send and receive, one after the other; no call
 * waits. What is received carries descriptors only where they are expected: else the kernel closes
 * those that a peer sends along.
 */
final class Wire implements AutoCloseable {
    private final SocketMessage outgoing =
            new SocketMessage(Frame.MAX_BYTES, Frame.MAX_PART_DESCRIPTORS);
    private final SocketMessage incoming = new SocketMessage(Frame.MAX_BYTES, 0);
    private final SocketMessage granted =
            new SocketMessage(Frame.MAX_BYTES, Frame.MAX_PART_DESCRIPTORS);
    private final PollSet state = new PollSet();

    /** As {@link SocketMessage#send}. */
    synchronized boolean send(int fd, byte[] frame, int... descriptors) {
        return outgoing.send(fd, frame, descriptors);
    }

    /** As {@link SocketMessage#receive}. */
    synchronized SocketMessage.Received receive(int fd) {
        return incoming.receive(fd);
    }

    /** As {@link SocketMessage#receive}, with descriptors, which are the caller's. */
    synchronized SocketMessage.Received receiveGranted(int fd) {
        return granted.receive(fd);
    }

    /** What is true of a descriptor now, of {@code events} and of those that need not be asked. */
    synchronized int poll(int fd, int events) {
        state.clear();
        state.add(fd, events);
        state.await(0);
        return state.ready(0);
    }

    /** Frees the memory; nobody may use it any more. */
    @Override
    public synchronized void close() {
        outgoing.close();
        incoming.close();
        granted.close();
        state.close();
    }
}
