package dev.dormouse.transport;

/**
 * A transport that could not do what it was asked; the message says operation, object, values and
 * remedy.
 */
public class TransportException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An error of the transport itself. */
    public TransportException(String message) {
        super(message);
    }

    /** As {@link #TransportException(String)}, with its cause. */
    public TransportException(String message, Throwable cause) {
        super(message, cause);
    }
}
