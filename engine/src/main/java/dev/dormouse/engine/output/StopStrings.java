package dev.dormouse.engine.output;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Looks for stop strings in text that arrives in pieces, and holds back only what may be the
 * beginning of one.
 *
 * <p>The stop string that begins first wins; of two that begin together, the one that the request
 * names first.
 */
final class StopStrings {
    private final List<String> stops;
    private final boolean include;
    private final StringBuilder held = new StringBuilder();

    /** {@code include} lets the stop string itself go out. */
    StopStrings(List<String> stops, boolean include) {
        this.stops = stops;
        this.include = include;
    }

    /**
     * What a piece of text led to.
     *
     * @param text text that is free to go out
     * @param met the stop string that was met, or null
     */
    record Scan(String text, @Nullable String met) {}

    /** Adds a piece. After a stop string was met nothing more may be added. */
    Scan push(String piece) {
        held.append(piece);
        int found = -1;
        @Nullable String met = null;
        for (String stop : stops) {
            int at = held.indexOf(stop);
            if (at >= 0 && (met == null || at < found)) {
                found = at;
                met = stop;
            }
        }
        if (met != null) {
            return new Scan(held.substring(0, include ? found + met.length() : found), met);
        }
        return new Scan(release(held.length() - openLength()), null);
    }

    /**
     * Adds a piece that lies below {@code min_tokens}: no stop string counts in it, nor across its
     * end.
     */
    String pass(String piece) {
        held.append(piece);
        return release(held.length());
    }

    /** What was held back, when the sequence ended otherwise. */
    String finish() {
        return release(held.length());
    }

    private String release(int length) {
        String text = held.substring(0, length);
        held.delete(0, length);
        return text;
    }

    /** The length of the longest end of the text that begins a stop string. */
    private int openLength() {
        int longest = 0;
        for (String stop : stops) {
            for (int length = Math.min(stop.length() - 1, held.length());
                    length > longest;
                    length--) {
                if (stop.startsWith(held.substring(held.length() - length))) {
                    longest = length;
                }
            }
        }
        return longest;
    }
}
