package dev.dormouse.connector;

/**
 * A side channel that could not be opened or used; the message names host, port and the setting.
 */
public final class SideChannelException extends ConnectorException {
    private static final long serialVersionUID = 1L;

    /** An error whose message names host, port and the setting. */
    public SideChannelException(String message, Throwable cause) {
        super(message, cause);
    }
}
