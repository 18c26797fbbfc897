package dev.dormouse.connector;

/**
 * A release that found reads or handshakes still pending at its limit; everything stayed
 * registered.
 */
public final class ReleaseTimeoutException extends ConnectorException {
    private static final long serialVersionUID = 1L;

    /** An error whose message names what is pending, with peers and ages. */
    public ReleaseTimeoutException(String message) {
        super(message);
    }
}
