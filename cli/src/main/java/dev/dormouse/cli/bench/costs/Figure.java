package dev.dormouse.cli.bench.costs;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Something that was measured.
 *
 * @param part what it is a part of
 * @param name what it is
 * @param unit of its value; empty for a ratio
 * @param atMost what it should not exceed, or null
 * @param atLeast what it should reach, or null
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
record Figure(
        String part,
        String name,
        double value,
        String unit,
        @Nullable Double atMost,
        @Nullable Double atLeast) {
    static Figure of(String part, String name, double value, String unit) {
        return new Figure(part, name, value, unit, null, null);
    }

    Figure atMost(double limit) {
        return new Figure(part, name, value, unit, limit, null);
    }

    Figure atLeast(double limit) {
        return new Figure(part, name, value, unit, null, limit);
    }

    /** Whether it is as it should be, or need not be anything. */
    @JsonProperty("kept")
    boolean kept() {
        return (atMost == null || value <= atMost) && (atLeast == null || value >= atLeast);
    }

    /** One line of a table. */
    String line() {
        String target =
                atMost != null
                        ? String.format(Locale.ROOT, "at most %.2f", atMost)
                        : atLeast != null
                                ? String.format(Locale.ROOT, "at least %.2f", atLeast)
                                : "";
        return String.format(
                        Locale.ROOT,
                        "%-11s %-62s %10.2f %-5s %s%s",
                        part,
                        name,
                        value,
                        unit,
                        target,
                        kept() ? "" : ", missed")
                .stripTrailing();
    }
}
