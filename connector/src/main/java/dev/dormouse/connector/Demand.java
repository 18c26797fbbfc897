package dev.dormouse.connector;

/**
 * What a peer asks of all ranks, on a side channel, again and again until it is told that they have
 * obeyed.
 */
sealed interface Demand permits Revocation, PushCancel {
    /** One name for all of it. */
    String id();
}
