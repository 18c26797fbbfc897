package dev.dormouse.http;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * The connections of one listener. When one more comes than there may be, the one that has waited
 * longest for its next request is closed, so that idle clients keep nobody out. Thread-safe.
 *
 * <p>There must be fewer than the process may open descriptors: Helidon 4.5.0 stops to listen for
 * good if a connection cannot be accepted.
 */
final class OpenConnections {
    private static final Logger LOGGER = System.getLogger("dormouse.http");
    private static final int MOST = 8192;
    private static final int FEWEST = 24;

    /** Two listeners, or one and as many connections to engines, and everything else. */
    private static final int SHARES_OF_DESCRIPTORS = 3;

    private static final long WARNING_INTERVAL_NANOS = Duration.ofMinutes(1).toNanos();

    private final int most;
    private final LongSupplier nanoClock;
    private final Set<ClientConnection> connections = new LinkedHashSet<>();
    private long closedIdle;
    private long warnedNanos;

    /** None yet, and never more than {@code most} but those that are served all at once. */
    OpenConnections(int most, LongSupplier nanoClock) {
        this.most = most;
        this.nanoClock = nanoClock;
        this.warnedNanos = nanoClock.getAsLong() - WARNING_INTERVAL_NANOS;
    }

    /**
     * How many a listener of this process may have, by the descriptors that it may open.
     *
     * @throws IllegalStateException if they are too few to serve anybody
     */
    static int mostOfThisProcess() {
        return ManagementFactory.getOperatingSystemMXBean()
                        instanceof UnixOperatingSystemMXBean system
                ? most(system.getMaxFileDescriptorCount(), system.getOpenFileDescriptorCount())
                : MOST;
    }

    /**
     * By the descriptors that there may be, and those that there are before any connection.
     *
     * @throws IllegalStateException if they are too few to serve anybody
     */
    static int most(long descriptors, long open) {
        long share = (descriptors - open) / SHARES_OF_DESCRIPTORS;
        if (share < FEWEST) {
            throw new IllegalStateException(
                    "cannot listen: of "
                            + descriptors
                            + " files that this process may open "
                            + open
                            + " are open already, but it needs at least "
                            + (open + SHARES_OF_DESCRIPTORS * FEWEST)
                            + "; raise the limit (ulimit -n)");
        }
        return (int) Math.min(share, MOST);
    }

    int most() {
        return most;
    }

    /** One more; may close another one. */
    synchronized void add(ClientConnection connection) {
        while (connections.size() >= most) {
            Optional<ClientConnection> oldest =
                    connections.stream()
                            .filter(ClientConnection::isIdle)
                            .max(Comparator.comparingLong(ClientConnection::idleNanos));
            if (oldest.isEmpty()) {
                break; // all are served: their number is bounded elsewhere
            }
            connections.remove(oldest.get());
            oldest.get().kill();
            closedIdle++;
            warn();
        }
        connections.add(connection);
    }

    /** It is over. */
    synchronized void remove(ClientConnection connection) {
        connections.remove(connection);
    }

    private void warn() {
        long now = nanoClock.getAsLong();
        if (now - warnedNanos >= WARNING_INTERVAL_NANOS) {
            warnedNanos = now;
            LOGGER.log(
                    Level.WARNING,
                    "too many connections: those that are idle longest are closed: most={0,number,#}"
                            + " closed={1,number,#}; the limit of open files (ulimit -n) sets most",
                    most,
                    closedIdle);
        }
    }
}
