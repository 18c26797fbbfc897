package dev.dormouse.testkit;

/** What can be made to go wrong with one read or write of a {@link ModelTransport}. */
public sealed interface ModelFault {
    /** The call that starts it throws. */
    record FailPost() implements ModelFault {}

    /** {@code poll} throws, always. */
    record ThrowOnPoll() implements ModelFault {}

    /** It fails after half of its blocks have arrived. */
    record FailHalfWay() implements ModelFault {}

    /** It stays in progress, and cannot be released, as long as its peer's process lives. */
    record NeverComplete() implements ModelFault {}

    /**
     * It fails, and the first {@code refusals} releases are refused: after each of them, late data
     * still hits the blocks that were to be filled.
     */
    record FailAndRefuseRelease(int refusals) implements ModelFault {}

    /** It completes, and the first {@code times} releases throw. */
    record ThrowOnRelease(int times) implements ModelFault {}
}
