package dev.dormouse.transport.local;

/** What a {@link SocketLoop} waits for. Its thread makes all calls. */
interface Watched {
    /** The descriptor; negative for none at present. */
    int descriptor();

    /** The events to wait for, besides the other side's end. */
    int interest();

    /** When {@link #expired} is to be called, as {@link System#nanoTime}; only if it has one. */
    default long deadlineNanos() {
        return 0;
    }

    /** Whether {@link #deadlineNanos} counts. */
    default boolean hasDeadline() {
        return false;
    }

    /** Some events have come; fewer than told may be true by now. */
    void ready(int events);

    /** The deadline has passed. */
    default void expired() {}

    /** Gives it up: one of the calls threw, and it is not watched any more. */
    void abandon();
}
