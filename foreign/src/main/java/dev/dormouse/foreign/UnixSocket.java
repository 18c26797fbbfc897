package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.OptionalInt;

/**
 * Sockets between processes of one host that keep the bounds of messages ({@code AF_UNIX}, {@code
 * SOCK_SEQPACKET}). No call waits. Names are in the abstract name space: no file, gone with the
 * last descriptor, and seen in the network name space only. Anybody there may take a name or
 * connect, so each side has to look at the other's {@link #credentials}.
 *
 * <p>Descriptors are closed on exec; {@link Libc#close} closes them. What is sent and received, see
 * {@link SocketMessage}. A call that fails throws {@link LibcException} and has changed nothing.
 */
public final class UnixSocket {
    /** What an abstract name may have in UTF-8. */
    public static final int MAX_NAME_BYTES = 107;

    private static final int AF_UNIX = 1;
    private static final int SOCK_SEQPACKET = 5;
    private static final int SOCK_NONBLOCK = 0x800;
    private static final int SOCK_CLOEXEC = 0x80000;
    private static final int SOL_SOCKET = 1;
    private static final int SO_PEERCRED = 17;
    private static final int SO_PEERPIDFD = 77; // Linux 6.5
    private static final long SYS_PIDFD_OPEN = 434; // the same on every architecture
    private static final int FAMILY_BYTES = 2;

    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // int socket(int domain, int type, int protocol);
    private static final MethodHandle SOCKET =
            BINDER.errnoFunction("socket", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    // int bind(int sockfd, const struct sockaddr *addr, socklen_t addrlen);
    private static final MethodHandle BIND =
            BINDER.errnoFunction("bind", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    // int listen(int sockfd, int backlog);
    private static final MethodHandle LISTEN =
            BINDER.errnoFunction("listen", JAVA_INT, JAVA_INT, JAVA_INT);
    // int connect(int sockfd, const struct sockaddr *addr, socklen_t addrlen);
    private static final MethodHandle CONNECT =
            BINDER.errnoFunction("connect", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT);
    // int accept4(int sockfd, struct sockaddr *addr, socklen_t *addrlen, int flags);
    private static final MethodHandle ACCEPT4 =
            BINDER.errnoFunction("accept4", JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
    // int getsockopt(int sockfd, int level, int optname, void *optval, socklen_t *optlen);
    private static final MethodHandle GETSOCKOPT =
            BINDER.errnoFunction(
                    "getsockopt", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS);
    // long syscall(long number, ...); all arguments are long on 64-bit Linux
    private static final MethodHandle SYSCALL =
            BINDER.errnoFunction("syscall", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    // uid_t geteuid(void);
    private static final MethodHandle GETEUID = BINDER.function("geteuid", JAVA_INT);

    private UnixSocket() {}

    /**
     * Takes a name and listens on it.
     *
     * @param backlog how many connections may wait for {@link #accept}
     * @throws LibcException with EADDRINUSE if somebody has the name
     */
    public static int listen(String name, int backlog) {
        int fd = open();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment address = address(arena, name);
            int bound = (int) BIND.invokeExact(errno, fd, address, (int) address.byteSize());
            Libc.check(bound, "bind", errno, () -> "name=@" + name);
            int listening = (int) LISTEN.invokeExact(errno, fd, backlog);
            Libc.check(listening, "listen", errno, () -> "name=@" + name + " backlog=" + backlog);
            return fd;
        } catch (Throwable t) {
            Libc.close(fd);
            throw Downcall.rethrow(t);
        }
    }

    /**
     * Connects to whoever listens on a name.
     *
     * @return empty if too many connections wait there: try again later
     * @throws LibcException with ECONNREFUSED if nobody listens
     */
    public static OptionalInt connect(String name) {
        int fd = open();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment address = address(arena, name);
            int result;
            do {
                result = (int) CONNECT.invokeExact(errno, fd, address, (int) address.byteSize());
            } while (Libc.interrupted(result, errno));
            if (result == -1 && CapturedErrno.read(errno) == Errno.EAGAIN) {
                Libc.close(fd);
                return OptionalInt.empty();
            }
            Libc.check(result, "connect", errno, () -> "name=@" + name);
            return OptionalInt.of(fd);
        } catch (Throwable t) {
            Libc.close(fd);
            throw Downcall.rethrow(t);
        }
    }

    /** Takes the next connection; empty if none waits. */
    public static OptionalInt accept(int listener) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int fd;
            do {
                fd =
                        (int)
                                ACCEPT4.invokeExact(
                                        errno,
                                        listener,
                                        MemorySegment.NULL,
                                        MemorySegment.NULL,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC);
            } while (Libc.interrupted(fd, errno)
                    || (fd == -1 && CapturedErrno.read(errno) == Errno.ECONNABORTED));
            if (fd == -1 && CapturedErrno.read(errno) == Errno.EAGAIN) {
                return OptionalInt.empty();
            }
            Libc.check(fd, "accept4", errno, () -> "listener=" + listener);
            return OptionalInt.of(fd);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** The other side's, from when it connected or began to listen. */
    public static PeerCredentials credentials(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment option = arena.allocate(JAVA_INT, 3);
            int result = getOption(errno, fd, SO_PEERCRED, option);
            Libc.check(result, "getsockopt", errno, () -> "fd=" + fd + " option=SO_PEERCRED");
            return new PeerCredentials(
                    option.getAtIndex(JAVA_INT, 0),
                    option.getAtIndex(JAVA_INT, 1),
                    option.getAtIndex(JAVA_INT, 2));
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /**
     * The process on the other side, as a descriptor that is readable once it has ended; closed on
     * exec. Before Linux 6.5 it is found by its number, and may be another process if the one that
     * connected has ended: ask afterwards whether the socket is still connected.
     *
     * @throws LibcException if it has ended, or this process cannot see it
     */
    public static int process(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            MemorySegment option = arena.allocate(JAVA_INT);
            int result = getOption(errno, fd, SO_PEERPIDFD, option);
            if (result == -1 && CapturedErrno.read(errno) == Errno.ENOPROTOOPT) {
                return openProcess(credentials(fd).pid());
            }
            Libc.check(result, "getsockopt", errno, () -> "fd=" + fd + " option=SO_PEERPIDFD");
            return option.get(JAVA_INT, 0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** This process's effective user, which a peer sees in its {@link #credentials}. */
    public static int user() {
        try {
            return (int) GETEUID.invokeExact();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    /** A process by its number, see {@link #process}. */
    static int openProcess(int pid) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            long result = (long) SYSCALL.invokeExact(errno, SYS_PIDFD_OPEN, (long) pid, 0L);
            Libc.check(result, "pidfd_open", errno, () -> "pid=" + pid);
            return (int) result;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static int open() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CapturedErrno.allocate(arena);
            int type = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
            int fd = (int) SOCKET.invokeExact(errno, AF_UNIX, type, 0);
            Libc.check(fd, "socket", errno, () -> "domain=AF_UNIX type=SOCK_SEQPACKET");
            return fd;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    private static int getOption(MemorySegment errno, int fd, int option, MemorySegment value)
            throws Throwable {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment length = arena.allocate(JAVA_INT);
            length.set(JAVA_INT, 0, (int) value.byteSize());
            return (int) GETSOCKOPT.invokeExact(errno, fd, SOL_SOCKET, option, value, length);
        }
    }

    /** {@code struct sockaddr_un}: the family, a zero, the name, and no end. */
    private static MemorySegment address(Arena arena, String name) {
        byte[] bytes = name.getBytes(UTF_8);
        if (bytes.length < 1 || bytes.length > MAX_NAME_BYTES) {
            throw new IllegalArgumentException(
                    "socket name of %d bytes: must be 1 to %d"
                            .formatted(bytes.length, MAX_NAME_BYTES));
        }
        MemorySegment address = arena.allocate(FAMILY_BYTES + 1L + bytes.length, 8);
        address.set(JAVA_SHORT, 0, (short) AF_UNIX);
        MemorySegment.copy(bytes, 0, address, JAVA_BYTE, FAMILY_BYTES + 1L, bytes.length);
        return address;
    }
}
