package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.function.Supplier;

/**
 * The calls of the C library that the product needs, on 64-bit Linux.
 *
 * <p>Each is one system call and knows nothing of the segments it returned before: who maps,
 * unmaps. Access through a segment after {@link #unmap} or {@link #mapOver} with {@link #PROT_NONE}
 * kills the JVM, so only a class that guards every access may use them. A call that fails throws
 * {@link LibcException} and, unless its text says otherwise, has changed nothing. Safe for all
 * threads except {@link #setEnvironmentIfAbsent}.
 */
public final class Libc {
    /** Pages may not be touched. */
    public static final int PROT_NONE = 0;

    /** Pages may be read. */
    public static final int PROT_READ = 1;

    /** Pages may be written. */
    public static final int PROT_WRITE = 2;

    /** Stores reach the file and every other mapping of it. */
    public static final int MAP_SHARED = 0x01;

    /** Stores stay in this process. */
    public static final int MAP_PRIVATE = 0x02;

    /** No file: zero pages. */
    public static final int MAP_ANONYMOUS = 0x20;

    /** No swap space is set aside. */
    public static final int MAP_NORESERVE = 0x4000;

    /** Pages are made present by the call itself. */
    public static final int MAP_POPULATE = 0x8000;

    /** Drop the pages; the next touch finds zeros, or the file's bytes. */
    public static final int MADV_DONTNEED = 4;

    /** Drop the pages and the file's bytes behind them. */
    public static final int MADV_REMOVE = 9;

    /** Leave the range out of a forked child. */
    public static final int MADV_DONTFORK = 10;

    /** Use transparent huge pages where possible. */
    public static final int MADV_HUGEPAGE = 14;

    /** Leave the range out of core dumps. */
    public static final int MADV_DONTDUMP = 16;

    /** Make the pages present and readable now (Linux 5.14). */
    public static final int MADV_POPULATE_READ = 22;

    /** Make the pages present and writable now (Linux 5.14). */
    public static final int MADV_POPULATE_WRITE = 23;

    /** The descriptor is closed on exec. */
    public static final int MFD_CLOEXEC = 1;

    /** The file may be sealed. */
    public static final int MFD_ALLOW_SEALING = 2;

    /** {@code fallocate} leaves the file's length as it is. */
    public static final int FALLOC_FL_KEEP_SIZE = 1;

    /** {@code fallocate} gives the range's pages back; needs {@link #FALLOC_FL_KEEP_SIZE}. */
    public static final int FALLOC_FL_PUNCH_HOLE = 2;

    private static final int MAP_FIXED = 0x10;
    private static final int SC_PAGESIZE = 30;
    private static final int RLIMIT_MEMLOCK = 8;
    private static final int NO_FILE = -1;
    private static final long SIGACTION_BYTES = 256;

    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
    private static final MethodHandle MMAP =
            BINDER.errnoFunction(
                    "mmap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT,
                    JAVA_LONG);
    // int munmap(void *addr, size_t length);
    private static final MethodHandle MUNMAP =
            BINDER.errnoFunction("munmap", JAVA_INT, JAVA_LONG, JAVA_LONG);
    // int madvise(void *addr, size_t length, int advice);
    private static final MethodHandle MADVISE =
            BINDER.errnoFunction("madvise", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);
    // int memfd_create(const char *name, unsigned int flags);
    private static final MethodHandle MEMFD_CREATE =
            BINDER.errnoFunction("memfd_create", JAVA_INT, ADDRESS, JAVA_INT);
    // int ftruncate(int fd, off_t length);
    private static final MethodHandle FTRUNCATE =
            BINDER.errnoFunction("ftruncate", JAVA_INT, JAVA_INT, JAVA_LONG);
    // int fallocate(int fd, int mode, off_t offset, off_t len);
    private static final MethodHandle FALLOCATE =
            BINDER.errnoFunction("fallocate", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
    // int close(int fd);
    private static final MethodHandle CLOSE = BINDER.errnoFunction("close", JAVA_INT, JAVA_INT);
    // int setenv(const char *name, const char *value, int overwrite);
    private static final MethodHandle SETENV =
            BINDER.errnoFunction("setenv", JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
    // char *getenv(const char *name);
    private static final MethodHandle GETENV = BINDER.function("getenv", ADDRESS, ADDRESS);
    // int getrlimit(int resource, struct rlimit *rlim);
    private static final MethodHandle GETRLIMIT =
            BINDER.errnoFunction("getrlimit", JAVA_INT, JAVA_INT, ADDRESS);
    // long sysconf(int name);
    private static final MethodHandle SYSCONF =
            BINDER.errnoFunction("sysconf", JAVA_LONG, JAVA_INT);
    // int malloc_trim(size_t pad);
    private static final MethodHandle MALLOC_TRIM =
            BINDER.function("malloc_trim", JAVA_INT, JAVA_LONG);

    // void free(void *ptr);
    private static final MethodHandle FREE = BINDER.procedure("free", ADDRESS);
    // int sigaction(int signum, const struct sigaction *act, struct sigaction *oldact);
    private static final MethodHandle SIGACTION =
            BINDER.errnoFunction("sigaction", JAVA_INT, JAVA_INT, ADDRESS, ADDRESS);

    private Libc() {}

    /**
     * Maps pages at an address that the kernel picks.
     *
     * @param lengthBytes rounded up to whole pages by the kernel
     * @param protection {@link #PROT_NONE} or an or of {@link #PROT_READ} and {@link #PROT_WRITE}
     * @param flags an or of {@code MAP_} constants, with exactly one of shared and private
     * @param fd the file, or -1 with {@link #MAP_ANONYMOUS}
     * @return the range, alive until it is unmapped; nothing closes it
     */
    public static MemorySegment map(
            long lengthBytes, int protection, int flags, int fd, long offsetBytes) {
        long address = mmap(0, lengthBytes, protection, flags, fd, offsetBytes);
        return MemorySegment.ofAddress(address).reinterpret(lengthBytes);
    }

    /** Maps {@code lengthBytes} of address space without pages: nothing may touch it. */
    public static MemorySegment reserve(long lengthBytes) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        return map(lengthBytes, PROT_NONE, flags, NO_FILE, 0);
    }

    /**
     * Replaces whatever is mapped at {@code target}, in one step ({@code MAP_FIXED}). When it fails
     * the old mapping may be gone.
     *
     * @param target whole pages
     * @see #map for the other parameters
     */
    public static void mapOver(
            MemorySegment target, int protection, int flags, int fd, long offsetBytes) {
        mmap(address(target), target.byteSize(), protection, flags | MAP_FIXED, fd, offsetBytes);
    }

    /** Takes the range out of the address space. */
    public static void unmap(MemorySegment range) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result = (int) MUNMAP.invokeExact(errno, address(range), range.byteSize());
            check(result, "munmap", errno, () -> describe(range));
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Tells the kernel how the range is used.
     *
     * @param advice one of the {@code MADV_} constants
     */
    public static void advise(MemorySegment range, int advice) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result = (int) MADVISE.invokeExact(errno, address(range), range.byteSize(), advice);
            check(result, "madvise", errno, () -> describe(range) + " advice=" + advice);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * As {@link #advise}, for advice that is no more than that.
     *
     * @return false if this kernel does not know it
     */
    public static boolean adviseIfKnown(MemorySegment range, int advice) {
        try {
            advise(range, advice);
            return true;
        } catch (LibcException e) {
            if (!e.errnoName().equals("EINVAL")) {
                throw e;
            }
            return false;
        }
    }

    /**
     * Makes an empty file that lives in memory only.
     *
     * @param name shown in {@code /proc/<pid>/maps}; need not be unique, at most 249 bytes
     * @param flags an or of the {@code MFD_} constants
     * @return its descriptor, to be closed with {@link #close}
     */
    public static int createMemoryFile(String name, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int fd = (int) MEMFD_CREATE.invokeExact(errno, arena.allocateFrom(name), flags);
            check(fd, "memfd_create", errno, () -> "name=" + name + " flags=" + flags);
            return fd;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Sets a file's length; new bytes are zero, cut bytes are gone. */
    public static void truncate(int fd, long lengthBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result;
            do {
                result = (int) FTRUNCATE.invokeExact(errno, fd, lengthBytes);
            } while (interrupted(result, errno));
            check(result, "ftruncate", errno, () -> "fd=" + fd + " lengthBytes=" + lengthBytes);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Sets pages of a file aside, or gives them back.
     *
     * @param mode 0 to set aside, or an or of the {@code FALLOC_} constants
     */
    public static void allocate(int fd, int mode, long offsetBytes, long lengthBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result;
            do {
                result = (int) FALLOCATE.invokeExact(errno, fd, mode, offsetBytes, lengthBytes);
            } while (interrupted(result, errno));
            check(
                    result,
                    "fallocate",
                    errno,
                    () ->
                            "fd=%d mode=%d offsetBytes=%d lengthBytes=%d"
                                    .formatted(fd, mode, offsetBytes, lengthBytes));
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Closes a descriptor. It is gone even when the call fails. */
    public static void close(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result = (int) CLOSE.invokeExact(errno, fd);
            check(result, "close", errno, () -> "fd=" + fd);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Sets a variable of this process and of the children it starts from now on, unless it has a
     * value. {@link System#getenv} may not show it: Java keeps its own copy.
     *
     * <p>glibc's environment has no lock that native readers would take: call this first thing in
     * {@code main}, before other threads run native code.
     *
     * @return whether the variable was absent and has been set
     */
    public static boolean setEnvironmentIfAbsent(String name, String value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment cName = arena.allocateFrom(name);
            MemorySegment present = (MemorySegment) GETENV.invokeExact(cName);
            if (present.address() != 0) {
                return false;
            }
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result = (int) SETENV.invokeExact(errno, cName, arena.allocateFrom(value), 0);
            check(result, "setenv", errno, () -> "name=" + name + " value=" + value);
            return true;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** How many bytes this process may lock or register with a network card. */
    public static ResourceLimit lockedMemoryLimit() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            // struct rlimit { rlim_t rlim_cur; rlim_t rlim_max; }; both unsigned, 64 bits
            MemorySegment limit = arena.allocate(JAVA_LONG, 2);
            int result = (int) GETRLIMIT.invokeExact(errno, RLIMIT_MEMLOCK, limit);
            check(result, "getrlimit", errno, () -> "resource=RLIMIT_MEMLOCK");
            return new ResourceLimit(
                    limitValue(limit.getAtIndex(JAVA_LONG, 0)),
                    limitValue(limit.getAtIndex(JAVA_LONG, 1)));
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** The size of a page, which every mapping starts at and is rounded up to. */
    public static long pageSizeBytes() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            long size = (long) SYSCONF.invokeExact(errno, SC_PAGESIZE);
            check(size, "sysconf", errno, () -> "name=_SC_PAGESIZE");
            return size;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Gives free memory of malloc back to the kernel.
     *
     * @return whether there was any
     */
    public static boolean trimHeap() {
        try {
            return (int) MALLOC_TRIM.invokeExact(0L) != 0;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Frees what native code allocated with malloc and gave away. Nothing may use it afterwards.
     *
     * @param allocation the address that malloc returned, or null's
     */
    public static void free(MemorySegment allocation) {
        try {
            FREE.invokeExact(allocation);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * The function that handles a signal in this process, as a plain number to compare: 0 for the
     * default action, 1 for none.
     *
     * @param signal a number of {@code signal.h}
     */
    public static long signalHandler(int signal) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            // glibc: struct sigaction is 152 bytes and starts with the handler
            MemorySegment action = arena.allocate(SIGACTION_BYTES, ADDRESS.byteAlignment());
            int result = (int) SIGACTION.invokeExact(errno, signal, MemorySegment.NULL, action);
            check(result, "sigaction", errno, () -> "signal=" + signal);
            return action.get(JAVA_LONG, 0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static long mmap(
            long address, long lengthBytes, int protection, int flags, int fd, long offsetBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            long mapped =
                    (long)
                            MMAP.invokeExact(
                                    errno,
                                    address,
                                    lengthBytes,
                                    protection,
                                    flags,
                                    fd,
                                    offsetBytes);
            check(
                    mapped,
                    "mmap",
                    errno,
                    () ->
                            "address=0x%x lengthBytes=%d protection=%d flags=0x%x fd=%d offsetBytes=%d"
                                    .formatted(
                                            address,
                                            lengthBytes,
                                            protection,
                                            flags,
                                            fd,
                                            offsetBytes));
            return mapped;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    static void check(long result, String operation, MemorySegment errno, Supplier<String> values) {
        if (result == -1) {
            throw new LibcException(operation, values.get(), CapturedErrno.read(errno));
        }
    }

    static boolean interrupted(int result, MemorySegment errno) {
        return result == -1 && CapturedErrno.read(errno) == Errno.EINTR;
    }

    /** A heap segment's address is an offset into its array, which no call here may be given. */
    private static long address(MemorySegment range) {
        if (!range.isNative()) {
            throw new IllegalArgumentException("not native memory: " + range);
        }
        return range.address();
    }

    private static String describe(MemorySegment range) {
        return "address=0x%x lengthBytes=%d".formatted(range.address(), range.byteSize());
    }

    /** RLIM_INFINITY is all ones, and larger than any limit that Java can hold. */
    private static long limitValue(long raw) {
        return raw < 0 ? ResourceLimit.UNLIMITED : raw;
    }
}
