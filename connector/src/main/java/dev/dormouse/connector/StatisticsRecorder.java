package dev.dormouse.connector;

import dev.dormouse.transport.Route;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

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
    private long revokedMappings;
    private final Map<String, RouteStatistics> routes = new HashMap<>();

    void transfer(TransferStatistics.TransferSample sample, Route route) {
        transfers.add(sample);
        count(route, new RouteStatistics(1, sample.bytes(), 0));
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

    /** So many mappings of the KV cache were revoked. */
    void revokedMappings(int count) {
        revokedMappings += count;
    }

    /** Another rank of a peer is loaded, or one less, for a change of -1. */
    void peer(Route route, int change) {
        count(route, new RouteStatistics(0, 0, change));
    }

    private void count(Route route, RouteStatistics more) {
        routes.merge(route.transport(), more, RouteStatistics::plus);
        routes.remove(route.transport(), RouteStatistics.NONE);
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
                        malformedNotifications,
                        revokedMappings,
                        routes);
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
        revokedMappings = 0;
        routes.clear();
        return taken;
    }
}
