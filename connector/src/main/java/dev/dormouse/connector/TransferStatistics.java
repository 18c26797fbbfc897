package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.List;

/**
 * What one rank's connector did in an interval.
 *
 * @param transfers successful reads
 * @param failedTransfers reads that failed at set-up or in flight, or were refused; those that
 *     waited for a handshake that failed are not among them
 * @param failedHandshakes handshakes that failed
 * @param failedNotifications messages that could not be sent
 * @param handshakes handshakes that succeeded
 * @param rehandshakes those of them with a peer that had been loaded before
 * @param registrations times the KV cache was registered
 * @param expiredRequests held requests whose lease ran out
 * @param revokedRequests held requests that were taken back from their readers, unread
 * @param notificationsAfterExpiry completions for requests that were not held any more
 * @param malformedNotifications messages that were dropped because they could not be understood
 */
public record TransferStatistics(
        List<TransferSample> transfers,
        long failedTransfers,
        long failedHandshakes,
        long failedNotifications,
        long handshakes,
        long rehandshakes,
        long registrations,
        long expiredRequests,
        long revokedRequests,
        long notificationsAfterExpiry,
        long malformedNotifications) {
    /** Nothing happened. */
    public static final TransferStatistics NONE =
            new TransferStatistics(List.of(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    /**
     * One successful read.
     *
     * @param durationSeconds from post to completion
     * @param postSeconds time to post it
     * @param bytes bytes moved
     * @param descriptors descriptors after merging neighbours
     */
    public record TransferSample(
            double durationSeconds, double postSeconds, long bytes, long descriptors) {}

    /** Copies the samples. */
    public TransferStatistics {
        transfers = List.copyOf(transfers);
    }

    /** True if nothing happened. */
    public boolean isEmpty() {
        return equals(NONE);
    }

    /** The sum of two intervals or ranks. */
    public TransferStatistics plus(TransferStatistics other) {
        List<TransferSample> all = new ArrayList<>(transfers);
        all.addAll(other.transfers);
        return new TransferStatistics(
                all,
                failedTransfers + other.failedTransfers,
                failedHandshakes + other.failedHandshakes,
                failedNotifications + other.failedNotifications,
                handshakes + other.handshakes,
                rehandshakes + other.rehandshakes,
                registrations + other.registrations,
                expiredRequests + other.expiredRequests,
                revokedRequests + other.revokedRequests,
                notificationsAfterExpiry + other.notificationsAfterExpiry,
                malformedNotifications + other.malformedNotifications);
    }
}
