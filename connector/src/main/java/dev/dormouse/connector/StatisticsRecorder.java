package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.List;

/** Counts what happens on one rank until it is asked. */
final class StatisticsRecorder {
    private final List<TransferStatistics.TransferSample> transfers = new ArrayList<>();
    private long failedTransfers;
    private long lateTransfers;
    private long failedHandshakes;
    private long failedNotifications;
    private long handshakes;
    private long rehandshakes;
    private long registrations;
    private long expiredLeases;
    private long revokedRequests;
    private long notificationsAfterExpiry;
    private long malformedNotifications;

    void transfer(TransferStatistics.TransferSample sample) {
        transfers.add(sample);
    }

    void failedTransfer() {
        failedTransfers++;
    }

    void lateTransfer() {
        lateTransfers++;
    }

    void failedHandshake() {
        failedHandshakes++;
    }

    void failedNotification() {
        failedNotifications++;
    }

    /** A peer was loaded; {@code again} if it had been before. */
    void handshake(boolean again) {
        handshakes++;
        if (again) {
            rehandshakes++;
        }
    }

    void registration() {
        registrations++;
    }

    void expiredLease() {
        expiredLeases++;
    }

    void revokedRequest() {
        revokedRequests++;
    }

    void notificationAfterExpiry() {
        notificationsAfterExpiry++;
    }

    void malformedNotification() {
        malformedNotifications(1);
    }

    void malformedNotifications(long count) {
        malformedNotifications += count;
    }

    /** What was counted since the last call. */
    TransferStatistics take() {
        TransferStatistics taken =
                new TransferStatistics(
                        transfers,
                        failedTransfers,
                        lateTransfers,
                        failedHandshakes,
                        failedNotifications,
                        handshakes,
                        rehandshakes,
                        registrations,
                        expiredLeases,
                        revokedRequests,
                        notificationsAfterExpiry,
                        malformedNotifications);
        transfers.clear();
        failedTransfers = 0;
        lateTransfers = 0;
        failedHandshakes = 0;
        failedNotifications = 0;
        handshakes = 0;
        rehandshakes = 0;
        registrations = 0;
        expiredLeases = 0;
        revokedRequests = 0;
        notificationsAfterExpiry = 0;
        malformedNotifications = 0;
        return taken;
    }
}
