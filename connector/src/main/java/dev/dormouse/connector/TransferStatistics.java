package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What one rank's connector did in an interval.
 *
 * <p>Each cause has its own count; {@link #failures} and {@link #expiredRequests} are vLLM's sums.
 *
 * @param transfers successful reads and writes
 * @param failedTransfers reads and writes that failed at set-up or in flight, or were refused;
 *     neither those that waited for a handshake that failed nor those that were late
 * @param lateTransfers reads and writes that were declined, or did not count when they had ended,
 *     since their time was over
 * @param failedHandshakes handshakes that failed
 * @param failedNotifications messages that could not be sent, or taken from the transport
 * @param handshakes handshakes after which a peer was loaded; not those that found that what is
 *     loaded is what the peer serves
 * @param rehandshakes those of them with a peer that had been loaded before
 * @param registrations times the KV cache was registered
 * @param expiredLeases held requests whose lease ran out
 * @param revokedRequests held requests that were taken back from their readers, unread
 * @param notificationsAfterExpiry completions for requests that were not held any more
 * @param malformedNotifications messages that were dropped, here or by the transport, because they
 *     could not be understood or were too long
 * @param revokedMappings mappings of the KV cache that other engines of this host were asked to
 *     give up
 * @param routes what took which transport, by its name
 */
public record TransferStatistics(
        List<TransferSample> transfers,
        long failedTransfers,
        long lateTransfers,
        long failedHandshakes,
        long failedNotifications,
        long handshakes,
        long rehandshakes,
        long registrations,
        long expiredLeases,
        long revokedRequests,
        long notificationsAfterExpiry,
        long malformedNotifications,
        long revokedMappings,
        Map<String, RouteStatistics> routes) {
    /** Nothing happened. */
    public static final TransferStatistics NONE =
            new TransferStatistics(List.of(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Map.of());

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

    /** Copies the collections. */
    public TransferStatistics {
        transfers = List.copyOf(transfers);
        routes = Map.copyOf(routes);
    }

    /** True if nothing happened. */
    public boolean isEmpty() {
        return equals(NONE);
    }

    /** All that failed, whatever it was: vLLM's failed transfers. */
    public long failures() {
        return failedTransfers + lateTransfers + failedHandshakes + failedNotifications;
    }

    /** Requests that were not read in time, as either side saw it: vLLM's expired requests. */
    public long expiredRequests() {
        return expiredLeases + lateTransfers;
    }

    /** The same counts with other samples. */
    public TransferStatistics withTransfers(List<TransferSample> samples) {
        return new TransferStatistics(
                samples,
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
    }

    /** The sum of two intervals or ranks. */
    public TransferStatistics plus(TransferStatistics other) {
        List<TransferSample> all = new ArrayList<>(transfers);
        all.addAll(other.transfers);
        Map<String, RouteStatistics> allRoutes = new HashMap<>(routes);
        other.routes.forEach((name, route) -> allRoutes.merge(name, route, RouteStatistics::plus));
        allRoutes.values().removeIf(RouteStatistics.NONE::equals);
        return new TransferStatistics(
                all,
                failedTransfers + other.failedTransfers,
                lateTransfers + other.lateTransfers,
                failedHandshakes + other.failedHandshakes,
                failedNotifications + other.failedNotifications,
                handshakes + other.handshakes,
                rehandshakes + other.rehandshakes,
                registrations + other.registrations,
                expiredLeases + other.expiredLeases,
                revokedRequests + other.revokedRequests,
                notificationsAfterExpiry + other.notificationsAfterExpiry,
                malformedNotifications + other.malformedNotifications,
                revokedMappings + other.revokedMappings,
                allRoutes);
    }
}
