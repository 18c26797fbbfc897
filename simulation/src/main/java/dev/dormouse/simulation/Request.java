package dev.dormouse.simulation;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** A client's request on its way through the cluster. */
final class Request {
    /** How it ended. */
    enum End {
        /** With every token of the oracle. */
        ANSWERED,
        /** With an explicit error, or an explicit abort. */
        REFUSED
    }

    private final String id;
    private final List<Integer> prompt;
    private final List<Integer> expected;
    private final boolean mustSucceed;
    private @Nullable Leg leg;

    /**
     * A request.
     *
     * @param expected what a plain engine answers
     * @param mustSucceed whether an error is a fault, too
     */
    Request(String id, List<Integer> prompt, List<Integer> expected, boolean mustSucceed) {
        this.id = id;
        this.prompt = List.copyOf(prompt);
        this.expected = List.copyOf(expected);
        this.mustSucceed = mustSucceed;
    }

    String id() {
        return id;
    }

    List<Integer> prompt() {
        return prompt;
    }

    List<Integer> expected() {
        return expected;
    }

    boolean mustSucceed() {
        return mustSucceed;
    }

    /** The leg that runs, if one does. */
    @Nullable Leg leg() {
        return leg;
    }

    void begin(Leg next) {
        leg = next;
    }

    void finish() {
        leg = null;
    }
}
