package dev.dormouse.transport;

import java.time.Duration;

/** How far a transfer is. */
public sealed interface TransferState {
    /** Still moving data. */
    record InProgress() implements TransferState {}

    /**
     * All data have arrived.
     *
     * @param duration from post to completion
     * @param postDuration time to post
     * @param bytes bytes moved
     * @param descriptors descriptors after merging neighbours
     */
    record Done(Duration duration, Duration postDuration, long bytes, long descriptors)
            implements TransferState {}

    /**
     * Ended without all data; the content of the blocks that were to be filled is undefined.
     *
     * @param reason what the transport said
     */
    record Failed(String reason) implements TransferState {}
}
