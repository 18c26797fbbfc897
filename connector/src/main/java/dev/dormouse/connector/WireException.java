package dev.dormouse.connector;

/** Bytes of a peer that do not mean what they should; the message says where and why. */
final class WireException extends ConnectorException {
    private static final long serialVersionUID = 1L;

    WireException(String message) {
        super(message);
    }

    WireException(String message, Throwable cause) {
        super(message, cause);
    }
}
