package dev.dormouse.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * The folders that {@code src/test/reference/make_folders.py} made, with what transformers and
 * tokenizers got from them.
 */
public final class TestFolders {
    private static final ObjectMapper JSON = new ObjectMapper();

    private TestFolders() {}

    /** A prompt and what a model makes of it: greedy tokens, logits of the first and the last. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Answer(String text, int[] tokens, int[] greedy, float[] first, float[] last) {}

    /** A text with its ids, with and without those added, and what they decode to. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Encoding(String text, int[] ids, int[] bare, String decoded) {}

    /** The folder of that name. */
    public static Path folder(String name) {
        URL url = Objects.requireNonNull(TestFolders.class.getResource("/folders/" + name), name);
        try {
            return Path.of(url.toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A copy of the folder of that name, for changes. */
    public static Path copy(String name, Path target) {
        try (Stream<Path> files = Files.list(folder(name))) {
            Files.createDirectories(target);
            for (Path file : files.toList()) {
                Files.copy(file, target.resolve(file.getFileName().toString()));
            }
            return target;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Changes a JSON file of a copied folder. */
    public static void change(Path file, Consumer<ObjectNode> change) {
        try {
            ObjectNode root = (ObjectNode) JSON.readTree(file.toFile());
            change.accept(root);
            JSON.writeValue(file.toFile(), root);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What the model of that name answers. */
    public static Answer[] answers(String name) {
        return stream(read(folder(name).resolve("expected.json")).path("answers"))
                .map(
                        node ->
                                new Answer(
                                        node.path("text").textValue(),
                                        ints(node.path("tokens")),
                                        ints(node.path("greedy")),
                                        floats(node.path("first")),
                                        floats(node.path("last"))))
                .toArray(Answer[]::new);
    }

    /** What the tokenizer of that name makes of texts. */
    public static Encoding[] encodings(String name) {
        return stream(read(folder(name).resolve("encodings.json")))
                .map(
                        node ->
                                new Encoding(
                                        node.path("text").textValue(),
                                        ints(node.path("ids")),
                                        ints(node.path("bare")),
                                        node.path("decoded").textValue()))
                .toArray(Encoding[]::new);
    }

    private static JsonNode read(Path file) {
        try {
            return JSON.readTree(file.toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Stream<JsonNode> stream(JsonNode array) {
        return StreamSupport.stream(array.spliterator(), false);
    }

    private static int[] ints(JsonNode array) {
        return stream(array).mapToInt(JsonNode::intValue).toArray();
    }

    private static float[] floats(JsonNode array) {
        float[] values = new float[array.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = array.path(i).floatValue();
        }
        return values;
    }
}
