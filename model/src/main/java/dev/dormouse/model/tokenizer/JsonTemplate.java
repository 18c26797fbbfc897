package dev.dormouse.model.tokenizer;

import dev.dormouse.model.json.JsonFields;

/**
 * The tokens that {@code tokenizer.json} adds to a text.
 *
 * @param before at its beginning
 * @param after at its end
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record JsonTemplate(int[] before, int[] after) {
    static JsonTemplate read(JsonFields file, JsonVocabulary tokens) {
        JsonTemplate template = new JsonTemplate(new int[0], new int[0]);
        for (JsonFields step : JsonSteps.of(file, "post_processor", "processors")) {
            String type = step.string("type");
            switch (type) {
                case "ByteLevel" -> {
                    // It only corrects offsets.
                }
                case "TemplateProcessing" -> template = template(step, tokens);
                default ->
                        throw JsonSteps.refused(
                                "post-processor '" + type + "'",
                                "'ByteLevel' or 'TemplateProcessing'");
            }
        }
        return template;
    }

    private static JsonTemplate template(JsonFields step, JsonVocabulary tokens) {
        IntList before = new IntList();
        IntList after = new IntList();
        int texts = 0;
        for (JsonFields piece : step.objects("single")) {
            if (piece.has("Sequence")) {
                texts++;
                continue;
            }
            String name = piece.object("SpecialToken").string("id");
            for (long id : step.object("special_tokens").object(name).naturals("ids")) {
                (texts == 0 ? before : after).add(tokens.checked(id, "special_tokens"));
            }
        }
        if (texts != 1) {
            throw JsonSteps.refused(
                    "a template with " + texts + " places for a text", "one with 1");
        }
        return new JsonTemplate(before.toArray(), after.toArray());
    }
}
