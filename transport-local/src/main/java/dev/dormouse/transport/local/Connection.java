package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.SocketMessage;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.IntFunction;

/**
 * A connected socket and the frames that wait to be sent over it. Safe for all threads; no call
 * waits. A socket that fails counts as closed by the other side.
 */
final class Connection {
    /** What may wait while the other side does not read, as when its process is stopped. */
    static final long MAX_WAITING_BYTES = 4L << 20;

    private static final int CLOSED = -1;

    /** What became of frames. */
    enum Sent {
        /** They are sent, or will be, in order. */
        YES,
        /** Too many wait. */
        FULL,
        /** The connection has ended. */
        CLOSED
    }

    private final Wire wire;
    private final Deque<byte[]> waiting = new ArrayDeque<>();
    private long waitingBytes;
    private boolean ending;
    private volatile int fd;

    /** Takes the socket over. */
    Connection(Wire wire, int fd) {
        this.wire = wire;
        this.fd = fd;
    }

    /** To wait for; negative once closed. */
    int descriptor() {
        return fd;
    }

    boolean isClosed() {
        return fd == CLOSED;
    }

    /** Whether something could not be sent at once. */
    synchronized boolean isWaiting() {
        return !waiting.isEmpty();
    }

    /** What to wait for. */
    synchronized int interest() {
        return (ending ? 0 : PollSet.POLLIN) | (waiting.isEmpty() ? 0 : PollSet.POLLOUT);
    }

    /** Sends all of the frames, or none. */
    synchronized Sent send(List<byte[]> frames) {
        if (isClosed() || ending) {
            return Sent.CLOSED;
        }
        if (waitingBytes > MAX_WAITING_BYTES) {
            return Sent.FULL;
        }
        enqueue(frames);
        flush();
        return isClosed() ? Sent.CLOSED : Sent.YES;
    }

    /** Sends a frame with descriptors now, or not at all. */
    synchronized boolean sendNow(byte[] frame, int... descriptors) {
        if (isClosed() || ending || !waiting.isEmpty()) {
            return false;
        }
        try {
            return wire.send(fd, frame, descriptors);
        } catch (LibcException e) {
            close();
            return false;
        }
    }

    /** Sends a frame, however much waits. */
    synchronized void sendAnyhow(byte[] frame) {
        if (!isClosed() && !ending) {
            enqueue(List.of(frame));
            flush();
        }
    }

    /** Sends a frame, however much waits, and closes the connection behind it. */
    synchronized void sendLast(byte[] frame) {
        if (!isClosed() && !ending) {
            enqueue(List.of(frame));
            ending = true;
            flush();
        }
    }

    /** Sends what can be sent of what waits. */
    synchronized void flush() {
        try {
            while (!isClosed() && !waiting.isEmpty() && wire.send(fd, waiting.getFirst())) {
                waitingBytes -= waiting.removeFirst().length;
            }
        } catch (LibcException e) {
            close();
        }
        if (ending && waiting.isEmpty()) {
            close();
        }
    }

    /** Takes the next frame. */
    synchronized SocketMessage.Received receive() {
        return receive(wire::receive);
    }

    /** Takes the next frame with the descriptors that come along, which are the caller's. */
    synchronized SocketMessage.Received receiveGranted() {
        return receive(wire::receiveGranted);
    }

    private SocketMessage.Received receive(IntFunction<SocketMessage.Received> way) {
        if (isClosed()) {
            return new SocketMessage.Received.End();
        }
        try {
            return way.apply(fd);
        } catch (LibcException e) {
            return new SocketMessage.Received.End();
        }
    }

    /** Whether the other side has not closed, at this moment. */
    synchronized boolean isHeld() {
        return !isClosed() && (wire.poll(fd, 0) & (PollSet.POLLHUP | PollSet.POLLERR)) == 0;
    }

    /** Closes it. Idempotent. */
    synchronized void close() {
        if (!isClosed()) {
            int closing = fd;
            fd = CLOSED;
            waiting.clear();
            Libc.close(closing);
        }
    }

    private void enqueue(List<byte[]> frames) {
        for (byte[] frame : frames) {
            waiting.add(frame);
            waitingBytes += frame.length;
        }
    }
}
