package dev.dormouse.router;

/** Base of the router's errors; the message says operation, object, values and remedy. */
public class RouterException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An error of the router itself. */
    public RouterException(String message) {
        super(message);
    }

    /** As {@link #RouterException(String)}, with its cause. */
    public RouterException(String message, Throwable cause) {
        super(message, cause);
    }
}
