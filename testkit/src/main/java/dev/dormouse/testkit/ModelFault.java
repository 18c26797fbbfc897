package dev.dormouse.testkit;

/** What can be made to go wrong with one read of a {@link ModelTransport}. */
public sealed interface ModelFault {
    /** {@code read} throws. */
    record FailPost() implements ModelFault {}

    /** {@code poll} throws, always. */
    record ThrowOnPoll() implements ModelFault {}

    /** The read fails after half of its blocks have arrived. */
    record FailHalfWay() implements ModelFault {}

    /** The read stays in progress, and cannot be released, as long as its peer's process lives. */
    record NeverComplete() implements ModelFault {}

    /**
     * The read fails, and the first {@code refusals} releases are refused: after each of them, late
     * data still hits the local blocks.
     */
    record FailAndRefuseRelease(int refusals) implements ModelFault {}
}
