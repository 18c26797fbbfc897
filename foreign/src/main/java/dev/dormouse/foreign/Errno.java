package dev.dormouse.foreign;

/** Names of the errors that the calls of this package report on Linux ({@code asm-generic}). */
final class Errno {
    static final int EINTR = 4;
    static final int EAGAIN = 11;
    static final int ENOPROTOOPT = 92;
    static final int ECONNABORTED = 103;
    static final int ECONNRESET = 104;

    private Errno() {}

    static String name(int errno) {
        return switch (errno) {
            case 1 -> "EPERM";
            case 2 -> "ENOENT";
            case EINTR -> "EINTR";
            case 3 -> "ESRCH";
            case 5 -> "EIO";
            case 9 -> "EBADF";
            case EAGAIN -> "EAGAIN";
            case 12 -> "ENOMEM";
            case 13 -> "EACCES";
            case 14 -> "EFAULT";
            case 16 -> "EBUSY";
            case 17 -> "EEXIST";
            case 19 -> "ENODEV";
            case 22 -> "EINVAL";
            case 23 -> "ENFILE";
            case 24 -> "EMFILE";
            case 26 -> "ETXTBSY";
            case 27 -> "EFBIG";
            case 28 -> "ENOSPC";
            case 29 -> "ESPIPE";
            case 32 -> "EPIPE";
            case 38 -> "ENOSYS";
            case 75 -> "EOVERFLOW";
            case 90 -> "EMSGSIZE";
            case ENOPROTOOPT -> "ENOPROTOOPT";
            case 95 -> "EOPNOTSUPP";
            case 98 -> "EADDRINUSE";
            case ECONNABORTED -> "ECONNABORTED";
            case ECONNRESET -> "ECONNRESET";
            case 107 -> "ENOTCONN";
            case 109 -> "ETOOMANYREFS";
            case 111 -> "ECONNREFUSED";
            default -> "errno " + errno;
        };
    }

    /** The name, with the usual cause where the name alone would not lead a reader to it. */
    static String describe(int errno) {
        return switch (errno) {
            case 11 -> "EAGAIN (locked-memory limit reached? see `ulimit -l`)";
            case 12 ->
                    "ENOMEM (out of memory, or too many mappings: see /proc/sys/vm/max_map_count)";
            case 24 -> "EMFILE (too many open files: see `ulimit -n`)";
            case 28 -> "ENOSPC (no memory or huge pages left for the file)";
            default -> name(errno);
        };
    }
}
