package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** A set of descriptors to wait for; filled anew for each wait. One thread at a time may use it. */
public final class PollSet implements AutoCloseable {
    /** There is something to read, or the other side has closed. */
    public static final int POLLIN = 0x1;

    /** There is room to write. */
    public static final int POLLOUT = 0x4;

    /** The descriptor is broken; need not be asked for. */
    public static final int POLLERR = 0x8;

    /** The other side has closed; need not be asked for. */
    public static final int POLLHUP = 0x10;

    // struct pollfd { int fd; short events; short revents; };
    private static final long POLLFD_BYTES = 8;
    private static final long EVENTS = 4;
    private static final long REVENTS = 6;
    private static final int INITIAL_CAPACITY = 16;

    // int poll(struct pollfd *fds, nfds_t nfds, int timeout);
    private static final MethodHandle POLL =
            SymbolBinder.ofLibc().errnoFunction("poll", JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT);

    private Arena arena = Arena.ofShared();
    private MemorySegment entries = arena.allocate(INITIAL_CAPACITY * POLLFD_BYTES, 8);
    private int size;

    /** Takes everything out. */
    public void clear() {
        size = 0;
    }

    /**
     * Adds a descriptor.
     *
     * @param events an or of {@link #POLLIN} and {@link #POLLOUT}, or 0 for the other two alone
     * @return its index, counted from 0 since {@link #clear}
     */
    public int add(int fd, int events) {
        if (size * POLLFD_BYTES == entries.byteSize()) {
            grow();
        }
        long at = size * POLLFD_BYTES;
        entries.set(JAVA_INT, at, fd);
        entries.set(JAVA_SHORT, at + EVENTS, (short) events);
        entries.set(JAVA_SHORT, at + REVENTS, (short) 0);
        return size++;
    }

    /**
     * Waits until one is ready, the time is over, or a signal comes.
     *
     * @param timeoutMillis 0 does not wait, -1 waits without end
     */
    public void await(int timeoutMillis) {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(call);
            int result = (int) POLL.invokeExact(errno, entries, (long) size, timeoutMillis);
            if (!Libc.interrupted(result, errno)) {
                Libc.check(result, "poll", errno, () -> "descriptors=" + size);
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** What is ready of an entry since the last {@link #await}; 0 for nothing. */
    public int ready(int index) {
        return entries.get(JAVA_SHORT, index * POLLFD_BYTES + REVENTS);
    }

    /** Frees the memory. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    @SuppressWarnings("MustBeClosedChecker") // close, or the next growth, closes it
    private void grow() {
        Arena outgrown = arena;
        MemorySegment before = entries;
        arena = Arena.ofShared();
        entries = arena.allocate(2 * before.byteSize(), 8);
        entries.asSlice(0, before.byteSize()).copyFrom(before);
        outgrown.close();
    }
}
