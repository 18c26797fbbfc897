package dev.dormouse.connector;

/** How a request ended, as far as its KV is concerned. */
public enum FinishKind {
    /** It reached its token limit. */
    LENGTH,
    /** It met an end token or a stop string. */
    STOPPED,
    /** Its client left, or the engine ended it. */
    ABORTED,
    /** It failed. */
    FAILED
}
