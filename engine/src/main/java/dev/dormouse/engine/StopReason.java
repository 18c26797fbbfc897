package dev.dormouse.engine;

/** Which of a request's own stop conditions ended its output. */
public sealed interface StopReason {
    /** One of its stop strings. */
    record Text(String stop) implements StopReason {}

    /** One of its stop tokens. */
    record Token(int tokenId) implements StopReason {}
}
