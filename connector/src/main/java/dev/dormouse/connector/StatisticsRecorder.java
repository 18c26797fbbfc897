package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.List;

/** Counts what happens on one rank until it is asked. */
final class StatisticsRecorder {
    private final List<TransferStatistics.TransferSample> transfers = new ArrayList<>();
    private long failedTransfers;
    private long failedHandshakes;
    private long failedNotifications;
    private long handshakes;
    private long rehandshakes;
    private long registrations;
    private long expiredRequests;
    private long revokedRequests;
    private long notificationsAfterExpiry;
    private long malformedNotifications;

    void transfer(TransferStatistics.TransferSample sample) {
        transfers.add(sample);
    }

    void failedTransfer() {
        failedTransfers++;
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

    void expiredRequest() {
        expiredRequests++;
    }

    void revokedRequest() {
        revokedRequests++;
    }

    void notificationAfterExpiry() {
        notificationsAfterExpiry++;
    }

    void malformedNotification() {
        malformedNotifications++;
    }

    /** What was counted since the last call. */
    TransferStatistics take() {
        TransferStatistics taken =
                new TransferStatistics(
                        transfers,
                        failedTransfers,
                        failedHandshakes,
                        failedNotifications,
                        handshakes,
                        rehandshakes,
                        registrations,
                        expiredRequests,
                        revokedRequests,
                        notificationsAfterExpiry,
                        malformedNotifications);
        transfers.clear();
        failedTransfers = 0;
        failedHandshakes = 0;
        failedNotifications = 0;
        handshakes = 0;
        rehandshakes = 0;
        registrations = 0;
        expiredRequests = 0;
        revokedRequests = 0;
        notificationsAfterExpiry = 0;
        malformedNotifications = 0;
        return taken;
    }
}
