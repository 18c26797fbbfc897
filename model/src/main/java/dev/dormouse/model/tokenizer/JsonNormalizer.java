package dev.dormouse.model.tokenizer;

import dev.dormouse.model.json.JsonFields;
import java.text.Normalizer;

/**
 * What {@code tokenizer.json} does to a text before it looks for tokens.
 *
 * @param changesText whether characters are composed (NFC)
 * @param replacesSpaces whether spaces become U+2581, which the encoder does
 * @param prependsSpace whether one comes before each piece, which the encoder does, too
 */
record JsonNormalizer(boolean changesText, boolean replacesSpaces, boolean prependsSpace) {
    private static final String SPACE = String.valueOf(SentencePieceEncoder.SPACE);

    static JsonNormalizer read(JsonFields file) {
        boolean composes = false;
        boolean replaces = false;
        boolean prepends = false;
        for (JsonFields step : JsonSteps.of(file, "normalizer", "normalizers")) {
            String type = step.string("type");
            switch (type) {
                case "NFC" -> composes = true;
                case "Prepend" -> {
                    require(step.string("prepend").equals(SPACE) && !replaces, type);
                    prepends = true;
                }
                case "Replace" -> {
                    boolean space =
                            step.object("pattern").findString("String").orElse("").equals(" ");
                    require(space && step.string("content").equals(SPACE), type);
                    replaces = true;
                }
                default ->
                        throw JsonSteps.refused(
                                "normalizer '" + type + "'", "'NFC', 'Prepend' or 'Replace'");
            }
        }
        require(replaces || !prepends, "Prepend");
        return new JsonNormalizer(composes, replaces, prepends);
    }

    private static void require(boolean holds, String type) {
        if (!holds) {
            throw JsonSteps.refused(
                    "a normalizer '" + type + "' of another kind",
                    "'Prepend' and 'Replace' of spaces by U+2581");
        }
    }

    String apply(String text) {
        return Normalizer.normalize(text, Normalizer.Form.NFC);
    }
}
