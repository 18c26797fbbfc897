package dev.dormouse.connector;

import java.util.concurrent.TimeUnit;

/**
 * Until when a read may touch its holder's blocks: after that the holder may have given them to
 * another prompt, or its memory away. A read must have ended by then, not only begun.
 *
 * <p>What is known, in this order: the holder's own answer to a question; the deadline in the
 * request's parameters, moved by the offset of the clocks, and never later than a whole lease after
 * the request came here; for a peer that tells neither, a whole lease after the request came, and
 * the renewals sent since. A deadline on a clock that is not known is none.
 */
final class ReadDeadline {
    /** vLLM declines this long before the deadline. */
    private static final long MAX_MARGIN_NANOS = TimeUnit.SECONDS.toNanos(5);

    private ReadDeadline() {}

    /** What stands for clock drift, delays and everything else that is not known. */
    static long marginNanos(long leaseNanos) {
        return Math.min(MAX_MARGIN_NANOS, leaseNanos / 6);
    }

    /** A producer's lease: what its parameters say, else what this engine's own are. */
    static long leaseNanos(RemoteLease lease, ConnectorConfig config) {
        return lease.lengthSeconds() > 0
                ? (long) (lease.lengthSeconds() * 1e9)
                : config.leaseDuration().toNanos();
    }

    /** How far a renewal extends such a lease, in vLLM's arithmetic: in whole seconds. */
    static long extensionNanos(long leaseNanos) {
        long seconds = TimeUnit.NANOSECONDS.toSeconds(leaseNanos);
        return TimeUnit.SECONDS.toNanos(seconds * 2 / 3);
    }

    /**
     * The last moment, on this rank's clock and with the margin taken off.
     *
     * @return one in the past if nothing is known
     */
    static long of(
            WaitingOrder read,
            LoadedEngine source,
            Renewals renewals,
            ConnectorConfig config,
            long nowNanos) {
        RemoteSource remote = read.order().remote();
        RemoteLease lease = remote.lease();
        long leaseNanos = leaseNanos(lease, config);
        long margin = marginNanos(leaseNanos);
        HoldAnswer hold = read.hold();
        ClockOffset clock = source.clock();
        long latest = read.arrivedNanos() + leaseNanos;
        if (hold != null) {
            return hold.confirms(source.identity()) ? hold.untilNanos() - margin : nowNanos;
        }
        if (lease.tellsDeadline() && clock != null) {
            long told = clock.toLocal(lease.deadlineSeconds());
            return lease.lengthSeconds() > 0
                    ? (told - latest > 0 ? latest : told) - margin
                    : told - MAX_MARGIN_NANOS; // a decode engine of vLLM's, whose time is its own
        }
        if (source.identity().instanceId() != null || lease.tellsDeadline()) {
            return nowNanos;
        }
        return renewals.extend(remote.requestId(), latest, margin) - margin;
    }
}
