package dev.dormouse.engine;

/** What a pause does with requests in flight. */
public enum PauseMode {
    /** Ends them with {@link FinishReason#ABORT}. */
    ABORT,
    /** Lets them finish; new ones are not started. */
    WAIT,
    /** Freezes them; they go on after the resume. */
    KEEP
}
