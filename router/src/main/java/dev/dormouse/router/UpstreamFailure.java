package dev.dormouse.router;

import dev.dormouse.router.routing.Outcome;

/** An engine that gave no usable answer. */
final class UpstreamFailure extends Exception {
    private static final long serialVersionUID = 1L;

    private final Outcome outcome;
    private final String detail;

    /** {@code detail} is told to the client, so it names no address. */
    UpstreamFailure(Outcome outcome, String detail) {
        super(detail, null, false, false);
        this.outcome = outcome;
        this.detail = detail;
    }

    /** What happened, fit for clients. */
    String detail() {
        return detail;
    }

    /** One of the outcomes that are no answer. */
    Outcome outcome() {
        return outcome;
    }
}
