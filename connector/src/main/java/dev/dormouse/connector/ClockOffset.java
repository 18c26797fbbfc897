package dev.dormouse.connector;

/**
 * How a peer's clock stands to this rank's, from one question and its answer: the peer stamped it
 * somewhere in between.
 *
 * @param offsetNanos the peer's clock minus this one, at the middle of the exchange
 * @param errorNanos by how much that may be wrong: half of the round trip
 */
record ClockOffset(double offsetNanos, double errorNanos) {
    /**
     * What an exchange tells.
     *
     * @param remoteSeconds the peer's stamp
     */
    static ClockOffset of(double remoteSeconds, long sentNanos, long receivedNanos) {
        double half = (receivedNanos - sentNanos) / 2.0;
        return new ClockOffset(remoteSeconds * 1e9 - (sentNanos + half), half);
    }

    /** The better one of two, the second of which may be missing. */
    ClockOffset orBetter(@org.jspecify.annotations.Nullable ClockOffset other) {
        return other == null || errorNanos <= other.errorNanos ? this : other;
    }

    /** The earliest time on this rank's clock that may be {@code remoteSeconds} at the peer. */
    long toLocal(double remoteSeconds) {
        return (long) (remoteSeconds * 1e9 - offsetNanos - errorNanos);
    }
}
