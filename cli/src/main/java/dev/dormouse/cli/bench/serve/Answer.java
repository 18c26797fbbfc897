package dev.dormouse.cli.bench.serve;

import java.util.List;

/** How a request ended, as its client saw it. */
public sealed interface Answer {
    /**
     * A whole answer. Times count from when the request was sent.
     *
     * @param promptTokens as the server counted them
     * @param outputTokens as the server counted them
     * @param firstTokenNanos until the first token came
     * @param gapNanos between events that brought tokens, in their order
     * @param lastTokenNanos until the last one came
     */
    record Served(
            int promptTokens,
            int outputTokens,
            long firstTokenNanos,
            List<Long> gapNanos,
            long lastTokenNanos)
            implements Answer {
        public Served {
            gapNanos = List.copyOf(gapNanos);
        }
    }

    /** None, or one that cannot be counted. */
    record Failed(String reason) implements Answer {}
}
