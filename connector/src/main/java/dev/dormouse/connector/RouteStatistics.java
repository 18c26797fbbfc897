package dev.dormouse.connector;

/**
 * What one transport did in an interval.
 *
 * @param transfers successful reads and writes
 * @param bytes that they moved
 * @param peers how many more ranks of peers are loaded than before
 */
public record RouteStatistics(long transfers, long bytes, long peers) {
    /** Nothing happened. */
    public static final RouteStatistics NONE = new RouteStatistics(0, 0, 0);

    /** The sum of two intervals or ranks. */
    RouteStatistics plus(RouteStatistics other) {
        return new RouteStatistics(
                transfers + other.transfers, bytes + other.bytes, peers + other.peers);
    }
}
