package dev.dormouse.nixl;

/** What came of the attempt to release a transfer. */
public enum ReleaseResult {
    /** The native request is gone; no byte moves on its behalf any more. */
    RELEASED,
    /** It is under way or NIXL holds on to it; nothing changed, try again. */
    STILL_ACTIVE
}
