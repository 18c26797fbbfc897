package dev.dormouse.simulation;

/** The code under simulation has broken a rule that it must keep under every schedule. */
final class Violation extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Violation(String message) {
        super(message);
    }

    Violation(String message, Throwable cause) {
        super(message + ": " + cause, cause);
    }
}
