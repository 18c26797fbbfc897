package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** How long processors have worked for this process, all of its threads, Java's or not. */
public final class ProcessCpuClock {
    private static final int CLOCK_PROCESS_CPUTIME_ID = 2;
    private static final long NANOS_PER_SECOND = 1_000_000_000;
    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // int clock_gettime(clockid_t clockid, struct timespec *tp);
    private static final MethodHandle CLOCK_GETTIME =
            BINDER.errnoFunction("clock_gettime", JAVA_INT, JAVA_INT, ADDRESS);

    private ProcessCpuClock() {}

    /** Nanoseconds since its start, counted exactly, where the JDK's own figure has ticks. */
    public static long nanos() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment time = arena.allocate(JAVA_LONG, 2);
            int result = (int) CLOCK_GETTIME.invokeExact(errno, CLOCK_PROCESS_CPUTIME_ID, time);
            Libc.check(result, "clock_gettime", errno, () -> "");
            return time.get(JAVA_LONG, 0) * NANOS_PER_SECOND + time.get(JAVA_LONG, Long.BYTES);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
