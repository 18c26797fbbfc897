package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;

/**
 * Room for one message of a {@link UnixSocket}, with descriptors of files that go along, used again
 * and again. One thread at a time may use it.
 */
public final class SocketMessage implements AutoCloseable {
    /** What one message can carry ({@code SCM_MAX_FD}). */
    public static final int MAX_DESCRIPTORS = 253;

    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MSG_CTRUNC = 0x8;
    private static final int MSG_TRUNC = 0x20;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;

    // struct msghdr of 64-bit Linux
    private static final long MSGHDR_BYTES = 56;
    private static final long MSG_IOV = 16;
    private static final long MSG_IOVLEN = 24;
    private static final long MSG_CONTROL = 32;
    private static final long MSG_CONTROLLEN = 40;
    private static final long MSG_FLAGS = 48;
    // struct iovec
    private static final long IOVEC_BYTES = 16;
    private static final long IOV_LEN = 8;
    // struct cmsghdr: length with this header, level, type, data
    private static final long CMSG_LEVEL = 8;
    private static final long CMSG_TYPE = 12;
    private static final long CMSG_DATA = 16;

    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // ssize_t sendmsg(int sockfd, const struct msghdr *msg, int flags);
    private static final MethodHandle SENDMSG =
            BINDER.errnoFunction("sendmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
    // ssize_t recvmsg(int sockfd, struct msghdr *msg, int flags);
    private static final MethodHandle RECVMSG =
            BINDER.errnoFunction("recvmsg", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);

    private final Arena arena = Arena.ofShared();
    private final MemorySegment errno = CapturedErrno.allocate(arena);
    private final MemorySegment header = arena.allocate(MSGHDR_BYTES, 8);
    private final MemorySegment vector = arena.allocate(IOVEC_BYTES, 8);
    private final MemorySegment payload;
    private final MemorySegment control;
    private boolean closed;

    /**
     * Takes the memory.
     *
     * @param maxBytes longer messages are refused when sent, and told to be cut when received
     * @param maxDescriptors that a received message may carry, at most {@link #MAX_DESCRIPTORS};
     *     the kernel closes those that are more. A sent one may carry as many.
     */
    public SocketMessage(int maxBytes, int maxDescriptors) {
        payload = arena.allocate(maxBytes, 8);
        control = arena.allocate(maxDescriptors == 0 ? 0 : controlBytes(maxDescriptors), 8);
        vector.set(ADDRESS, 0, payload);
    }

    /** What became of an attempt to receive. */
    public sealed interface Received {
        /** Nothing is there yet. */
        record Nothing() implements Received {}

        /** The other side has closed, and everything that it sent was received. */
        record End() implements Received {}

        /**
         * A message.
         *
         * @param descriptors the receiver's to close, closed on exec
         * @param cut whether bytes or descriptors are missing, since there was no room
         */
        @SuppressWarnings("ArrayRecordComponent") // handed over once, never compared
        record Message(byte[] bytes, int[] descriptors, boolean cut) implements Received {}
    }

    /**
     * Sends a message, or nothing of it.
     *
     * @param bytes at least one: an empty message looks like the end
     * @param descriptors stay the caller's to close
     * @return false if the other side has too much to read already
     * @throws LibcException as EPIPE or ECONNRESET if the other side has closed
     */
    public boolean send(int fd, byte[] bytes, int... descriptors) {
        if (bytes.length < 1
                || bytes.length > payload.byteSize()
                || (descriptors.length > 0
                        && controlBytes(descriptors.length) > control.byteSize())) {
            throw new IllegalArgumentException(
                    "message of %d bytes and %d descriptors does not fit"
                            .formatted(bytes.length, descriptors.length));
        }
        MemorySegment.copy(bytes, 0, payload, JAVA_BYTE, 0, bytes.length);
        long length = 0;
        if (descriptors.length > 0) {
            length = controlBytes(descriptors.length);
            control.set(JAVA_LONG, 0, CMSG_DATA + 4L * descriptors.length);
            control.set(JAVA_INT, CMSG_LEVEL, SOL_SOCKET);
            control.set(JAVA_INT, CMSG_TYPE, SCM_RIGHTS);
            MemorySegment.copy(descriptors, 0, control, JAVA_INT, CMSG_DATA, descriptors.length);
        }
        try {
            long sent;
            do {
                prepareHeader(bytes.length, length);
                sent = (long) SENDMSG.invokeExact(errno, fd, header, MSG_DONTWAIT | MSG_NOSIGNAL);
            } while (sent == -1 && CapturedErrno.read(errno) == Errno.EINTR);
            if (sent == -1 && CapturedErrno.read(errno) == Errno.EAGAIN) {
                return false;
            }
            Libc.check(
                    sent,
                    "sendmsg",
                    errno,
                    () ->
                            "fd=%d bytes=%d descriptors=%d"
                                    .formatted(fd, bytes.length, descriptors.length));
            return true;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Receives the next message, if there is one. A sender of an empty one is taken to have closed.
     */
    public Received receive(int fd) {
        try {
            long received;
            do {
                prepareHeader(payload.byteSize(), control.byteSize());
                received =
                        (long)
                                RECVMSG.invokeExact(
                                        errno, fd, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
                // The kernel says once that the other side closed without having read everything;
                // what it sent before is there all the same.
            } while (received == -1
                    && (CapturedErrno.read(errno) == Errno.EINTR
                            || CapturedErrno.read(errno) == Errno.ECONNRESET));
            if (received == -1 && CapturedErrno.read(errno) == Errno.EAGAIN) {
                return new Received.Nothing();
            }
            Libc.check(received, "recvmsg", errno, () -> "fd=" + fd);
            int[] descriptors = descriptors();
            if (received == 0 && descriptors.length == 0) {
                return new Received.End();
            }
            int flags = header.get(JAVA_INT, MSG_FLAGS);
            return new Received.Message(
                    payload.asSlice(0, received).toArray(JAVA_BYTE),
                    descriptors,
                    (flags & (MSG_TRUNC | MSG_CTRUNC)) != 0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Frees the memory. Idempotent. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            arena.close();
        }
    }

    private void prepareHeader(long payloadBytes, long controlBytes) {
        vector.set(JAVA_LONG, IOV_LEN, payloadBytes);
        header.set(ADDRESS, MSG_IOV, vector);
        header.set(JAVA_LONG, MSG_IOVLEN, 1);
        header.set(ADDRESS, MSG_CONTROL, controlBytes == 0 ? MemorySegment.NULL : control);
        header.set(JAVA_LONG, MSG_CONTROLLEN, controlBytes);
        header.set(JAVA_INT, MSG_FLAGS, 0);
    }

    /**
     * Of all control messages: the kernel writes one, and leaves it to the reader to expect more.
     */
    private int[] descriptors() {
        long end = header.get(JAVA_LONG, MSG_CONTROLLEN);
        int[] all = {};
        for (long at = 0; at + CMSG_DATA <= end; ) {
            long length = control.get(JAVA_LONG, at);
            if (length < CMSG_DATA || length > end - at) {
                break;
            }
            if (control.get(JAVA_INT, at + CMSG_LEVEL) == SOL_SOCKET
                    && control.get(JAVA_INT, at + CMSG_TYPE) == SCM_RIGHTS) {
                int count = (int) ((length - CMSG_DATA) / 4);
                int before = all.length;
                all = Arrays.copyOf(all, before + count);
                MemorySegment.copy(control, JAVA_INT, at + CMSG_DATA, all, before, count);
            }
            at += Math.ceilDiv(length, 8) * 8;
        }
        return all;
    }

    private static long controlBytes(int descriptors) {
        return CMSG_DATA + Math.ceilDiv(4L * descriptors, 8) * 8;
    }
}
