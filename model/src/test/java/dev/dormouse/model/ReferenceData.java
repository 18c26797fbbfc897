package dev.dormouse.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * What llama.cpp and jinja2 gave for the default model.
 *
 * <p>Made by {@code src/test/reference/make_reference.py}, which says how. Logits are those of the
 * model's weights in float32.
 */
public final class ReferenceData {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ReferenceData() {}

    /** The logit of a token. */
    public record Logit(int token, float value) {}

    /**
     * One prompt and how the model goes on.
     *
     * @param name short, for messages
     * @param text what was encoded, with special tokens added where the file says so
     * @param parseSpecial whether control tokens in the text were parsed
     * @param tokens the prompt's ids
     * @param continuation the 32 ids of greedy decoding, which does not stop at end tokens
     * @param top1 for each prompt position the most likely next id
     * @param margin for each prompt position the logit distance between the best two
     * @param lastLogits the 20 highest logits at the last prompt position, highest first
     */
    public record Prompt(
            String name,
            String text,
            boolean parseSpecial,
            List<Integer> tokens,
            List<Integer> continuation,
            List<Integer> top1,
            List<Float> margin,
            List<Logit> lastLogits) {}

    /** A text with its ids, control tokens taken for text or parsed. */
    public record Encoding(String text, List<Integer> plain, List<Integer> special) {}

    /** A message of a conversation. */
    public record Message(String role, String content) {}

    /**
     * What a chat template made of a conversation: a text, or the message that it raised.
     *
     * @param template a name from {@link #templates}, or {@code default} for the model's own
     */
    public record Rendering(
            String template,
            List<Message> messages,
            boolean addGenerationPrompt,
            Optional<String> text,
            Optional<String> error) {}

    /** The prompts. */
    public static List<Prompt> prompts() {
        List<Prompt> prompts = new ArrayList<>();
        for (JsonNode node : read("prompts.json")) {
            List<Float> margin = new ArrayList<>();
            node.get("margin").forEach(n -> margin.add(n.floatValue()));
            List<Logit> logits = new ArrayList<>();
            node.get("lastLogits")
                    .forEach(
                            n -> logits.add(new Logit(n.get(0).intValue(), n.get(1).floatValue())));
            prompts.add(
                    new Prompt(
                            node.get("name").textValue(),
                            node.get("text").textValue(),
                            node.get("parseSpecial").booleanValue(),
                            ints(node.get("tokens")),
                            ints(node.get("continuation")),
                            ints(node.get("top1")),
                            margin,
                            logits));
        }
        return prompts;
    }

    /** The texts that only the tokenizer sees. */
    public static List<Encoding> encodings() {
        List<Encoding> encodings = new ArrayList<>();
        for (JsonNode node : read("tokenizer.json")) {
            List<Integer> plain = ints(node.get(1));
            List<Integer> special = node.size() > 2 ? ints(node.get(2)) : plain;
            encodings.add(new Encoding(node.get(0).textValue(), plain, special));
        }
        return encodings;
    }

    /** Chat templates by name. */
    public static Map<String, String> templates() {
        Map<String, String> templates = new LinkedHashMap<>();
        read("chat.json")
                .get("templates")
                .properties()
                .forEach(e -> templates.put(e.getKey(), e.getValue().textValue()));
        return templates;
    }

    /** What the chat templates gave. */
    public static List<Rendering> renderings() {
        List<Rendering> renderings = new ArrayList<>();
        for (JsonNode node : read("chat.json").get("renderings")) {
            List<Message> messages = new ArrayList<>();
            node.get("messages")
                    .forEach(
                            m ->
                                    messages.add(
                                            new Message(
                                                    m.get("role").textValue(),
                                                    m.get("content").textValue())));
            renderings.add(
                    new Rendering(
                            node.get("template").textValue(),
                            messages,
                            node.get("addGenerationPrompt").booleanValue(),
                            Optional.ofNullable(node.path("text").textValue()),
                            Optional.ofNullable(node.path("error").textValue())));
        }
        return renderings;
    }

    /** A template that is all white space control, and what it gives with {@code messages} true. */
    public record Layout(String template, String text) {}

    /** Templates about white space only. */
    public static List<Layout> layouts() {
        List<Layout> layouts = new ArrayList<>();
        for (JsonNode node : read("chat.json").get("layouts")) {
            layouts.add(new Layout(node.get(0).textValue(), node.get(1).textValue()));
        }
        return layouts;
    }

    /**
     * The texts that another pre-tokenizer cuts differently: its name, then ids by the index in
     * {@link #encodings}. All other texts have the ids given there.
     */
    public static Map<String, Map<Integer, List<Integer>>> preTokenizers() {
        Map<String, Map<Integer, List<Integer>>> byName = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> named : read("pretokenizers.json").properties()) {
            Map<Integer, List<Integer>> different = new LinkedHashMap<>();
            named.getValue()
                    .properties()
                    .forEach(e -> different.put(Integer.valueOf(e.getKey()), ints(e.getValue())));
            byName.put(named.getKey(), different);
        }
        return byName;
    }

    private static List<Integer> ints(JsonNode array) {
        List<Integer> values = new ArrayList<>();
        array.forEach(n -> values.add(n.intValue()));
        return values;
    }

    private static JsonNode read(String name) {
        try (InputStream in = ReferenceData.class.getResourceAsStream("/reference/" + name)) {
            return JSON.readTree(Objects.requireNonNull(in, name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
