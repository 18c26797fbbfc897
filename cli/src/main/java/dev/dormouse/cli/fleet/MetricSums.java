package dev.dormouse.cli.fleet;

import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * An engine's metrics at one moment.
 *
 * @param values by name; the samples of a name are summed over their labels
 */
public record MetricSums(Map<String, Double> values) {
    private static final Pattern SAMPLE =
            Pattern.compile("^([a-z_:A-Z0-9]+)(?:\\{[^}]*})? ([-+.0-9eE]+)$", Pattern.MULTILINE);

    /** Copies the map. */
    public MetricSums {
        values = Map.copyOf(values);
    }

    public static MetricSums of(Endpoint engine) {
        return parse(engine.get("/metrics"));
    }

    /** Reads Prometheus text. */
    static MetricSums parse(String text) {
        return new MetricSums(
                SAMPLE.matcher(text)
                        .results()
                        .collect(
                                Collectors.groupingBy(
                                        sample -> sample.group(1),
                                        Collectors.summingDouble(
                                                sample -> Double.parseDouble(sample.group(2))))));
    }

    /** The sum of a name, which must be there. */
    public double value(String name) {
        Double value = values.get(name);
        if (value == null) {
            throw new FleetException("the engine's metrics do not have " + name);
        }
        return value;
    }
}
