package dev.dormouse.router.routing;

/** How a request, or one leg of it, ended. */
public enum Outcome {
    /** Answered with success, completely. */
    OK("ok"),
    /** Answered with 4xx. */
    REJECTED("rejected"),
    /** Answered with a status that is neither success nor 4xx. */
    FAILED("failed"),
    /** No connection to an engine came up, so nothing was sent. */
    UNREACHABLE("unreachable"),
    /** An engine's connection broke, or its answer makes no sense. */
    BROKEN("broken"),
    /** An engine was silent for too long. */
    TIMED_OUT("timed_out"),
    /** Given up because the client left or the router stops. */
    CANCELLED("cancelled");

    private final String label;

    Outcome(String label) {
        this.label = label;
    }

    /** The value of the metrics' {@code outcome} label. */
    public String label() {
        return label;
    }

    /** The outcome that an answer's status alone means. */
    public static Outcome ofStatus(int status) {
        return switch (status / 100) {
            case 2 -> OK;
            case 4 -> REJECTED;
            default -> FAILED;
        };
    }
}
