package dev.dormouse.connector;

/** Base of the connector's errors; the message says operation, object, values and remedy. */
public class ConnectorException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An error of the connector itself. */
    public ConnectorException(String message) {
        super(message);
    }

    /** As {@link #ConnectorException(String)}, with its cause. */
    public ConnectorException(String message, Throwable cause) {
        super(message, cause);
    }
}
