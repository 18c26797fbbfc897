package dev.dormouse.connector;

/** What an engine does with a request whose remote KV could not be read. */
public enum LoadFailurePolicy {
    /** The request ends with an error. */
    FAIL,
    /** The engine computes the prompt itself. */
    RECOMPUTE
}
