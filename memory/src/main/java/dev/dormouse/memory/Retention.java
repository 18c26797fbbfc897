package dev.dormouse.memory;

/** What becomes of the content of a device's memory when it sleeps. */
public enum Retention {
    /** It is forgotten; after the wake it is undefined. */
    DISCARD,
    /** It is kept in host memory, and is back after the wake. */
    KEEP_ON_HOST
}
