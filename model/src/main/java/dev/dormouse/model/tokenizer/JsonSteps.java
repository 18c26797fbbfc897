package dev.dormouse.model.tokenizer;

import dev.dormouse.model.json.JsonFields;
import java.util.List;
import java.util.Optional;

/** A part of {@code tokenizer.json} that is one step, or a sequence of them. */
final class JsonSteps {
    private JsonSteps() {}

    /**
     * The steps of a part; none when it is missing.
     *
     * @param list the name that a sequence gives to its list
     */
    static List<JsonFields> of(JsonFields file, String part, String list) {
        Optional<JsonFields> step = file.findObject(part);
        if (step.isEmpty()) {
            return List.of();
        }
        if (!step.get().string("type").equals("Sequence")) {
            return List.of(step.get());
        }
        return step.get().objects(list);
    }

    static TokenizerException refused(String found, String supported) {
        return new TokenizerException(
                "load tokenizer: tokenizer.json has %s, supported is %s"
                        .formatted(found, supported));
    }
}
