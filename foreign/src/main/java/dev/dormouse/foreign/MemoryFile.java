package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * What there is to do with descriptors of files in memory ({@link Libc#createMemoryFile}), one's
 * own and those that another process sent. A call that fails throws {@link LibcException} and has
 * changed nothing.
 */
public final class MemoryFile {
    /** No further seals. */
    public static final int F_SEAL_SEAL = 0x1;

    /** The file cannot become shorter, so its pages are never taken from under a mapping. */
    public static final int F_SEAL_SHRINK = 0x2;

    /** The file cannot become longer. */
    public static final int F_SEAL_GROW = 0x4;

    // fcntl.h and linux/fcntl.h
    private static final int F_GETFL = 3;
    private static final int F_DUPFD_CLOEXEC = 1030;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_GET_SEALS = 1034;
    private static final int O_CLOEXEC = 0x80000;
    private static final int O_RDONLY = 0;
    private static final int O_RDWR = 2;
    private static final int O_ACCMODE = 3;

    private static final int AT_EMPTY_PATH = 0x1000;
    private static final int STATX_BASIC_STATS = 0x7ff;
    // struct statx of linux/stat.h: the same on every architecture
    private static final long STATX_BYTES = 256;
    private static final long STX_INO = 32;
    private static final long STX_SIZE = 40;
    private static final long STX_BLOCKS = 48;
    private static final long STX_BLOCK_BYTES = 512;
    private static final long STX_DEV_MAJOR = 136;
    private static final long STX_DEV_MINOR = 140;

    // struct statfs of 64-bit Linux is 120 bytes and starts with the type
    private static final long STATFS_BYTES = 256;
    private static final long TMPFS_MAGIC = 0x01021994;

    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // int fcntl(int fd, int cmd, ...); 64-bit Linux passes an int here as to any other function
    private static final MethodHandle FCNTL =
            BINDER.errnoFunction("fcntl", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    // int open(const char *path, int flags, ...);
    private static final MethodHandle OPEN =
            BINDER.errnoFunction("open", JAVA_INT, ADDRESS, JAVA_INT);
    // int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *buf);
    private static final MethodHandle STATX =
            BINDER.errnoFunction("statx", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS);
    // int fstatfs(int fd, struct statfs *buf);
    private static final MethodHandle FSTATFS =
            BINDER.errnoFunction("fstatfs", JAVA_INT, JAVA_INT, ADDRESS);

    private MemoryFile() {}

    /**
     * Which file it is, and how long.
     *
     * @param device the file system, as {@code major:minor} in the two halves
     * @param inode unique in the file system, as long as the file is open somewhere
     * @param allocatedBytes of its pages; less than the size if it has holes
     */
    public record Status(long device, long inode, long sizeBytes, long allocatedBytes) {}

    /** Another descriptor of the same open file, to be closed on its own; closed on exec. */
    public static int duplicate(int fd) {
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }

    /**
     * Opens the same file once more, for reading only; closed on exec. Needs {@code /proc}.
     *
     * <p>Guards against mistakes only: whoever is the file's owner, or root, may open it for
     * writing in the same way.
     */
    public static int openReadOnly(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            String path = "/proc/self/fd/" + fd;
            int opened;
            do {
                opened =
                        (int)
                                OPEN.invokeExact(
                                        errno, arena.allocateFrom(path), O_RDONLY | O_CLOEXEC);
            } while (Libc.interrupted(opened, errno));
            Libc.check(opened, "open", errno, () -> "path=" + path);
            return opened;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Adds seals, for good. The file must have been made with {@link Libc#MFD_ALLOW_SEALING}.
     *
     * @param seals an or of the {@code F_SEAL_} constants
     */
    public static void seal(int fd, int seals) {
        fcntl(fd, F_ADD_SEALS, seals);
    }

    /**
     * The file's seals.
     *
     * @throws LibcException with EINVAL if it is no file in memory
     */
    public static int seals(int fd) {
        return fcntl(fd, F_GET_SEALS, 0);
    }

    /** Whether the descriptor is open for reading and writing. */
    public static boolean isWritable(int fd) {
        return (fcntl(fd, F_GETFL, 0) & O_ACCMODE) == O_RDWR;
    }

    /** Whether its pages are those of ordinary memory, and not of a pool that may be empty. */
    public static boolean hasOrdinaryPages(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment status = arena.allocate(STATFS_BYTES, 8);
            int result = (int) FSTATFS.invokeExact(errno, fd, status);
            Libc.check(result, "fstatfs", errno, () -> "fd=" + fd);
            return status.get(JAVA_LONG, 0) == TMPFS_MAGIC;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** Which file it is, and how long now. */
    public static Status status(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment status = arena.allocate(STATX_BYTES, 8);
            int result =
                    (int)
                            STATX.invokeExact(
                                    errno,
                                    fd,
                                    arena.allocateFrom(""),
                                    AT_EMPTY_PATH,
                                    STATX_BASIC_STATS,
                                    status);
            Libc.check(result, "statx", errno, () -> "fd=" + fd);
            long device =
                    (long) status.get(JAVA_INT, STX_DEV_MAJOR) << 32
                            | Integer.toUnsignedLong(status.get(JAVA_INT, STX_DEV_MINOR));
            return new Status(
                    device,
                    status.get(JAVA_LONG, STX_INO),
                    status.get(JAVA_LONG, STX_SIZE),
                    status.get(JAVA_LONG, STX_BLOCKS) * STX_BLOCK_BYTES);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static int fcntl(int fd, int command, int argument) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int result = (int) FCNTL.invokeExact(errno, fd, command, argument);
            Libc.check(
                    result,
                    "fcntl",
                    errno,
                    () -> "fd=%d command=%d argument=%d".formatted(fd, command, argument));
            return result;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
