package dev.dormouse.simulation;

/** What a world has seen. */
final class Tally {
    long answered;
    long refused;
    long remoteTokens;
    long handshakes;
    long transitions;
    long deaths;
}
