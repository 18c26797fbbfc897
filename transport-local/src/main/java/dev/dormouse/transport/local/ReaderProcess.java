package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.PollSet;

/**
 * A peer's process. When it has ended, its mappings are gone; nothing else proves that but its own
 * word.
 */
final class ReaderProcess {
    private static final int CLOSED = -1;

    private final Wire wire;
    private final int number;
    private volatile int fd;

    /**
     * Takes the descriptor over.
     *
     * @param number its process id, for messages
     */
    ReaderProcess(Wire wire, int fd, int number) {
        this.wire = wire;
        this.fd = fd;
        this.number = number;
    }

    int number() {
        return number;
    }

    /** Readable once the process has ended; negative once closed. */
    int descriptor() {
        return fd;
    }

    boolean hasEnded() {
        return fd == CLOSED || (wire.poll(fd, PollSet.POLLIN) & PollSet.POLLIN) != 0;
    }

    void close() {
        if (fd != CLOSED) {
            int closing = fd;
            fd = CLOSED;
            Libc.close(closing);
        }
    }
}
