package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.UnixSocket;
import java.util.OptionalInt;
import java.util.function.IntConsumer;

/** The socket that peers connect to, under a name that nobody can guess. */
final class Listener implements Watched {
    private static final System.Logger LOG = System.getLogger("dormouse.transport.local");
    private static final int BACKLOG = 128;

    /** How long it takes no connections after the process had no descriptor for one. */
    private static final long PAUSE_NANOS = 100_000_000;

    /** So that what else is ready gets its turn. */
    private static final int MAX_PER_ROUND = 64;

    private static final int NONE = -1;

    private final String name = "dormouse-" + Token.random();
    private final IntConsumer accepted;
    private volatile int fd = UnixSocket.listen(name, BACKLOG);
    private boolean paused;
    private long pausedUntilNanos;

    /**
     * Listens.
     *
     * @param accepted takes each connection over
     */
    Listener(IntConsumer accepted) {
        this.accepted = accepted;
    }

    String name() {
        return name;
    }

    @Override
    public int descriptor() {
        return paused ? NONE : fd;
    }

    @Override
    public int interest() {
        return PollSet.POLLIN;
    }

    @Override
    public boolean hasDeadline() {
        return paused;
    }

    @Override
    public long deadlineNanos() {
        return pausedUntilNanos;
    }

    @Override
    public void expired() {
        paused = false;
    }

    @Override
    public void ready(int events) {
        for (int i = 0; i < MAX_PER_ROUND && fd != NONE; i++) {
            OptionalInt connection;
            try {
                connection = UnixSocket.accept(fd);
            } catch (LibcException e) {
                LOG.log(System.Logger.Level.WARNING, "no connection can be taken for a while", e);
                paused = true;
                pausedUntilNanos = System.nanoTime() + PAUSE_NANOS;
                return;
            }
            if (connection.isEmpty()) {
                return;
            }
            accepted.accept(connection.getAsInt());
        }
    }

    /** Ends it. Idempotent. */
    @Override
    public void abandon() {
        if (fd != NONE) {
            int closing = fd;
            fd = NONE;
            Libc.close(closing);
        }
    }
}
