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

    /** Less than a peer waits for the next question. */
    private static final long LONGEST_NANOS = Duration.ofSeconds(30).toNanos();

    private record Kept(ZmtpConnection connection, long sinceNanos) {}

    /** The oldest first. */
    private final Map<SideChannelAddress, Kept> kept = new LinkedHashMap<>();

    private final LongSupplier nanoClock;
    private boolean closed;

    KeptConnections(LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
    }

    /** The connection to an address, which is the caller's from now on; null if there is none. */
    synchronized @Nullable ZmtpConnection take(SideChannelAddress address) {
        closeOld(MOST);
        Kept found = kept.remove(address);
        return found == null ? null : found.connection();
    }

    /** Takes over a connection that is in order: no answer is outstanding. */
    synchronized void keep(SideChannelAddress address, ZmtpConnection connection) {
        Kept other = kept.remove(address);
        if (other != null) {
            close(other);
        }
        closeOld(MOST - 1);
        Kept fresh = new Kept(connection, nanoClock.getAsLong());
        if (closed) {
            close(fresh);
        } else {
            kept.put(address, fresh);
        }
    }

    /** Closes all, also those that come later. */
    @Override
    public synchronized void close() {
        closed = true;
        kept.values().forEach(KeptConnections::close);
        kept.clear();
    }

    private void closeOld(int most) {
        long nowNanos = nanoClock.getAsLong();
        for (Iterator<Kept> each = kept.values().iterator(); each.hasNext(); ) {
            Kept next = each.next();
            if (kept.size() <= most && nowNanos - next.sinceNanos() < LONGEST_NANOS) {
                return;
            }
            each.remove();
            close(next);
        }
    }

    private static void close(Kept old) {
        try {
            old.connection().close();
        } catch (IOException e) {
            LOG.log(System.Logger.Level.DEBUG, "side channel: close failed", e);
        }
    }
}
