package dev.dormouse.nixl;

import java.time.Duration;

/**
 * NIXL's own measurement of a finished transfer.
 *
 * @param postDuration how long the posting took
 * @param transferDuration from posting until NIXL saw the end, so it includes the time between
 *     polls
 * @param totalBytes bytes moved
 * @param descriptorCount descriptors after NIXL merged neighbours
 */
public record TransferTelemetry(
        Duration postDuration, Duration transferDuration, long totalBytes, long descriptorCount) {}
