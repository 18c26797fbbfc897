package dev.dormouse.model.folder;

import dev.dormouse.model.json.JsonFields;
import java.util.List;
import java.util.stream.IntStream;

/** How a model stretches its rotary embedding for contexts longer than it was first trained for. */
final class RopeScaling {
    private RopeScaling() {}

    /**
     * What each pair's frequency is divided by; empty for 1.
     *
     * <p>Llama 3's rule is that of {@code _compute_llama3_parameters} in transformers: slow
     * frequencies are divided by the factor, fast ones kept, those in between blended.
     */
    static List<Double> divisors(JsonFields scaling, double base, int dimensions) {
        String type =
                scaling.findString("rope_type")
                        .or(() -> scaling.findString("type"))
                        .orElse("default");
        return switch (type) {
            case "default" -> List.of();
            case "llama3" -> {
                Llama3 rule = Llama3.read(scaling);
                yield IntStream.range(0, dimensions / 2)
                        .mapToObj(i -> rule.divisor(StrictMath.pow(base, -2.0 * i / dimensions)))
                        .toList();
            }
            default ->
                    throw scaling.refused("rope scaling '" + type + "'", "'default' or 'llama3'");
        };
    }

    private record Llama3(double factor, double low, double high, double context) {
        static Llama3 read(JsonFields scaling) {
            Llama3 rule =
                    new Llama3(
                            scaling.positiveReal("factor"),
                            scaling.positiveReal("low_freq_factor"),
                            scaling.positiveReal("high_freq_factor"),
                            scaling.positiveReal("original_max_position_embeddings"));
            if (rule.high <= rule.low) {
                throw scaling.refused(
                        "'high_freq_factor' %s with 'low_freq_factor' %s"
                                .formatted(rule.high, rule.low),
                        "a higher one");
            }
            return rule;
        }

        double divisor(double frequency) {
            double turns = context * frequency / (2 * Math.PI);
            if (turns > high) {
                return 1;
            }
            if (turns < low) {
                return factor;
            }
            double smooth = (turns - low) / (high - low);
            return 1 / ((1 - smooth) / factor + smooth);
        }
    }
}
