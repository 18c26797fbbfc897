package dev.dormouse.connector;

import java.io.IOException;
import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Open connections to peers' side channels that nobody uses, at most one for each address. Old ones
 * are closed when others come or go. Thread-safe.
 */
final class KeptConnections implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final int MOST = 64;

    /**
     * Less than a peer waits for the next question, and soon enough for a name that moves to
     * another machine.
     */
    private static final long LONGEST_NANOS = Duration.ofSeconds(30).toNanos();

    /**
     * A connection, and from when its peer is the one that the address named.
     *
     * @param openedNanos by the clock of {@link KeptConnections}
     */
    record Opened(ZmtpConnection connection, long openedNanos) {}

    /** Those that were used last come last. */
    private final Map<SideChannelAddress, Opened> kept = new LinkedHashMap<>();

    private final LongSupplier nanoClock;
    private boolean closed;

    KeptConnections(LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
    }

    /** The connection to an address, which is the caller's from now on; null if there is none. */
    synchronized @Nullable Opened take(SideChannelAddress address) {
        closeOld();
        return kept.remove(address);
    }

    /** Takes over a connection that is in order: no answer is outstanding. */
    synchronized void keep(SideChannelAddress address, Opened opened) {
        if (closed) {
            close(opened);
            return;
        }
        Opened other = kept.remove(address);
        if (other != null) {
            close(other);
        }
        kept.put(address, opened);
        closeOld();
    }

    /** Closes all, also those that come later. */
    @Override
    public synchronized void close() {
        closed = true;
        kept.values().forEach(KeptConnections::close);
        kept.clear();
    }

    private void closeOld() {
        long nowNanos = nanoClock.getAsLong();
        for (Iterator<Opened> each = kept.values().iterator(); each.hasNext(); ) {
            Opened next = each.next();
            if (kept.size() > MOST || nowNanos - next.openedNanos() >= LONGEST_NANOS) {
                each.remove();
                close(next);
            }
        }
    }

    private static void close(Opened old) {
        try {
            old.connection().close();
        } catch (IOException e) {
            LOG.log(System.Logger.Level.DEBUG, "side channel: close failed", e);
        }
    }
}
