package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A descriptor that any thread can make readable, to end another one's {@link PollSet#await}
 * ({@code eventfd}).
 */
public final class WakeDescriptor implements AutoCloseable {
    private static final int EFD_NONBLOCK = 0x800;
    private static final int EFD_CLOEXEC = 0x80000;
    private static final long COUNTER_BYTES = 8;

    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // int eventfd(unsigned int initval, int flags);
    private static final MethodHandle EVENTFD =
            BINDER.errnoFunction("eventfd", JAVA_INT, JAVA_INT, JAVA_INT);
    // ssize_t write(int fd, const void *buf, size_t count);
    private static final MethodHandle WRITE =
            BINDER.errnoFunction("write", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG);
    // ssize_t read(int fd, void *buf, size_t count);
    private static final MethodHandle READ =
            BINDER.errnoFunction("read", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG);

    private final int fd;
    private boolean closed;

    /** Makes one that is not readable. */
    public WakeDescriptor() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            fd = (int) EVENTFD.invokeExact(errno, 0, EFD_NONBLOCK | EFD_CLOEXEC);
            Libc.check(fd, "eventfd", errno, () -> "initval=0");
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** To wait for; readable after a {@link #wake}. */
    public int descriptor() {
        return fd;
    }

    /** Makes it readable. Does nothing once it is closed. */
    public synchronized void wake() {
        if (!closed) {
            transfer("write", WRITE, 1);
        }
    }

    /** Makes it unreadable again. */
    public synchronized void reset() {
        if (!closed) {
            transfer("read", READ, 0);
        }
    }

    /** Closes it. Idempotent. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            Libc.close(fd);
        }
    }

    private void transfer(String operation, MethodHandle call, long value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment counter = arena.allocate(JAVA_LONG);
            counter.set(JAVA_LONG, 0, value);
            long result;
            do {
                result = (long) call.invokeExact(errno, fd, counter, COUNTER_BYTES);
            } while (result == -1 && CapturedErrno.read(errno) == Errno.EINTR);
            // EAGAIN: it is as readable, or as unreadable, as it can be
            if (result == -1 && CapturedErrno.read(errno) != Errno.EAGAIN) {
                Libc.check(result, operation, errno, () -> "fd=" + fd);
            }
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
