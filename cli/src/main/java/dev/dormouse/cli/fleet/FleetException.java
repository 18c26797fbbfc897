package dev.dormouse.cli.fleet;

/** Something that keeps a fleet from going on; the message is for its user. */
public final class FleetException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public FleetException(String message) {
        super(message);
    }

    public FleetException(String message, Throwable cause) {
        super(message, cause);
    }
}
