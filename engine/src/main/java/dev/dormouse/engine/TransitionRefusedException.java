package dev.dormouse.engine;

/** A transition that was not made; nothing has changed. */
public final class TransitionRefusedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Why, for whoever maps it to a status code. */
    public enum Reason {
        /** The call itself is wrong: level, mode, tag, or a missing option. */
        INVALID,
        /** The engine's state does not allow it now. */
        CONFLICT,
        /** Something that it needs is not there now, such as memory; a second try may succeed. */
        UNAVAILABLE
    }

    private final Reason reason;

    /** A refusal whose message names the value, the limit and the remedy. */
    public TransitionRefusedException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    /** As {@link #TransitionRefusedException(Reason, String)}, with its cause. */
    public TransitionRefusedException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    /** Why. */
    public Reason reason() {
        return reason;
    }
}
