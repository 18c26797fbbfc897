package dev.dormouse.router;

import dev.dormouse.router.routing.Outcome;
import io.helidon.webserver.CloseConnectionException;

/** Closes the client's connection in the middle of an answer, so that it cannot pass as whole. */
final class AbruptEnd extends CloseConnectionException {
    private static final long serialVersionUID = 1L;

    private final Outcome outcome;

    AbruptEnd(Outcome outcome, String message) {
        super(message);
        this.outcome = outcome;
    }

    /** How the request ended. */
    Outcome outcome() {
        return outcome;
    }
}
