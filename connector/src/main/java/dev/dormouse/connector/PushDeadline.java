package dev.dormouse.connector;

import java.util.concurrent.TimeUnit;

/**
 * Until when another engine may be written to. It waits for a time that it tells; no write begins
 * or counts after a margin before that time's end, and it gives blocks that nobody has let go of to
 * another use only a margin after it: whatever a transport has under way has twice the margin to
 * end.
 */
final class PushDeadline {
    private static final long MAX_MARGIN_NANOS = TimeUnit.MINUTES.toNanos(2);

    private PushDeadline() {}

    /** A quarter of the time, at most two minutes. */
    static long marginNanos(long timeoutNanos) {
        return Math.min(MAX_MARGIN_NANOS, timeoutNanos / 4);
    }

    /**
     * When a write must have ended, on this rank's clock and with the margin taken off.
     *
     * @param lease what the registration says
     * @param arrivedNanos when it came
     * @return one in the past if an engine of this product does not tell enough
     */
    static long ofWrite(
            RemoteLease lease,
            LoadedEngine target,
            long arrivedNanos,
            ConnectorConfig config,
            long nowNanos) {
        long timeoutNanos =
                lease.lengthSeconds() > 0
                        ? (long) (lease.lengthSeconds() * 1e9)
                        : config.pushTimeout().toNanos();
        long latest = arrivedNanos + timeoutNanos;
        long margin = marginNanos(timeoutNanos);
        ClockOffset clock = target.clock();
        if (lease.tellsDeadline() && clock != null) {
            long told = clock.toLocal(lease.deadlineSeconds());
            return (told - latest < 0 ? told : latest) - margin;
        }
        return target.identity().instanceId() == null ? latest - margin : nowNanos;
    }
}
