package dev.dormouse.model.json;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.NullNode;
import dev.dormouse.model.ModelException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/**
 * A JSON object of a model's file; a field that is null counts as missing.
 *
 * <p>A plain accessor throws {@link ModelException} when the field is missing; a {@code find}
 * accessor is empty then. All throw it, naming file and field, when the value is of another kind.
 * Immutable; safe from any thread.
 */
public final class JsonFields {
    private static final int MAX_DEPTH = 64;

    private static final ObjectMapper MAPPER =
            new ObjectMapper(
                            JsonFactory.builder()
                                    .streamReadConstraints(
                                            StreamReadConstraints.builder()
                                                    .maxNestingDepth(MAX_DEPTH)
                                                    .build())
                                    .build())
                    .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private final String where;
    private final JsonNode node;

    private JsonFields(String where, JsonNode node) {
        this.where = where;
        this.node = node;
    }

    /**
     * Reads a file that holds one object.
     *
     * @param limitBytes the largest file that is read
     * @throws ModelException when the file cannot be read, is larger, or is no JSON object
     */
    public static JsonFields read(Path file, long limitBytes) {
        try {
            long length = Files.size(file);
            if (length > limitBytes) {
                throw new ModelException(
                        "read %s: %d bytes, the limit is %d".formatted(file, length, limitBytes));
            }
            return parse(Files.readAllBytes(file), file.toString());
        } catch (IOException e) {
            throw new ModelException("read " + file + ": " + e, e);
        }
    }

    /** As {@link #read}, or empty when there is no such file. */
    public static Optional<JsonFields> findFile(Path file, long limitBytes) {
        return Files.exists(file) ? Optional.of(read(file, limitBytes)) : Optional.empty();
    }

    /**
     * Parses one object.
     *
     * @param where what the bytes are, for messages
     * @throws ModelException when they are no JSON object, or have a field twice
     */
    public static JsonFields parse(byte[] bytes, String where) {
        try {
            return new JsonFields(where, MAPPER.readTree(bytes)).requireObject();
        } catch (JacksonException e) {
            throw new ModelException("read " + where + ": not JSON: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw new ModelException("read " + where + ": " + e, e);
        }
    }

    private JsonFields requireObject() {
        if (!node.isObject()) {
            throw new ModelException(
                    "read %s: it is %s, must be an object".formatted(where, describe(node)));
        }
        return this;
    }

    /** The names of all fields that are not null, in the order of the file. */
    public List<String> names() {
        List<String> names = new ArrayList<>();
        node.fieldNames().forEachRemaining(names::add);
        names.removeIf(name -> !has(name));
        return names;
    }

    /** Whether there is such a field, and it is not null. */
    public boolean has(String field) {
        return node.hasNonNull(field);
    }

    /** Whether the field is a text. */
    public boolean isString(String field) {
        return value(field).isTextual();
    }

    /** Whether the field is an array. */
    public boolean isArray(String field) {
        return value(field).isArray();
    }

    /** The text of that field. */
    public String string(String field) {
        return findString(field).orElseThrow(() -> missing(field, "a string"));
    }

    /** The text of that field, or empty. */
    public Optional<String> findString(String field) {
        if (!has(field)) {
            return Optional.empty();
        }
        require(field, value(field).isTextual(), "a string");
        return Optional.of(value(field).textValue());
    }

    /** The boolean of that field, or {@code otherwise}. */
    public boolean bool(String field, boolean otherwise) {
        if (!has(field)) {
            return otherwise;
        }
        require(field, value(field).isBoolean(), "true or false");
        return value(field).booleanValue();
    }

    /** The integer of that field, from 0 to {@link Long#MAX_VALUE}, or empty. */
    public OptionalLong findNatural(String field) {
        if (!has(field)) {
            return OptionalLong.empty();
        }
        JsonNode value = value(field);
        boolean fits = value.isIntegralNumber() && value.canConvertToLong();
        require(field, fits && value.longValue() >= 0, "an integer from 0 to " + Long.MAX_VALUE);
        return OptionalLong.of(value.longValue());
    }

    /** The integer of that field, from 0 to {@link Integer#MAX_VALUE}. */
    public int natural(String field) {
        long value = findNatural(field).orElseThrow(() -> missing(field, "an integer"));
        require(field, value <= Integer.MAX_VALUE, "at most " + Integer.MAX_VALUE);
        return (int) value;
    }

    /** The integer of that field, from 1 to {@link Integer#MAX_VALUE}. */
    public int positiveInt(String field) {
        int value = natural(field);
        require(field, value > 0, "positive");
        return value;
    }

    /** The integer of that field, from 1 to {@link Integer#MAX_VALUE}, or empty. */
    public OptionalInt findPositiveInt(String field) {
        return has(field) ? OptionalInt.of(positiveInt(field)) : OptionalInt.empty();
    }

    /** The positive finite number of that field. */
    public double positiveReal(String field) {
        if (!has(field)) {
            throw missing(field, "a number");
        }
        JsonNode value = value(field);
        double number = value.doubleValue();
        require(
                field,
                value.isNumber() && number > 0 && Double.isFinite(number),
                "a positive finite number");
        return number;
    }

    /** The positive finite number of that field, or {@code otherwise}. */
    public double positiveReal(String field, double otherwise) {
        return has(field) ? positiveReal(field) : otherwise;
    }

    /** The object of that field. */
    public JsonFields object(String field) {
        return findObject(field).orElseThrow(() -> missing(field, "an object"));
    }

    /** The object of that field, or empty. */
    public Optional<JsonFields> findObject(String field) {
        if (!has(field)) {
            return Optional.empty();
        }
        return Optional.of(new JsonFields(path(field), value(field)).requireObject());
    }

    /** The array of objects of that field; empty when it is missing. */
    public List<JsonFields> objects(String field) {
        List<JsonFields> objects = new ArrayList<>();
        for (JsonNode element : elements(field)) {
            String name = path(field) + "[" + objects.size() + "]";
            objects.add(new JsonFields(name, element).requireObject());
        }
        return objects;
    }

    /** The array of strings of that field; empty when it is missing. */
    public List<String> strings(String field) {
        List<String> strings = new ArrayList<>();
        for (JsonNode element : elements(field)) {
            require(field, element.isTextual(), "an array of strings");
            strings.add(element.textValue());
        }
        return strings;
    }

    /**
     * The array of pairs of strings of that field, each one written as an array of two or as one
     * string with a space in between; empty when it is missing.
     */
    public List<List<String>> pairs(String field) {
        List<List<String>> pairs = new ArrayList<>();
        for (JsonNode element : elements(field)) {
            if (element.isTextual()) {
                String text = element.textValue();
                int space = text.indexOf(' ', 1);
                require(field, space > 0, "an array of pairs");
                pairs.add(List.of(text.substring(0, space), text.substring(space + 1)));
            } else {
                boolean pair = element.isArray() && element.size() == 2;
                pair = pair && element.path(0).isTextual() && element.path(1).isTextual();
                require(field, pair, "an array of pairs");
                pairs.add(List.of(element.path(0).textValue(), element.path(1).textValue()));
            }
        }
        return pairs;
    }

    /** The array of integers from 0 on of that field, or one that stands for itself. */
    public List<Long> naturals(String field) {
        if (has(field) && !isArray(field)) {
            return List.of(findNatural(field).getAsLong());
        }
        List<Long> naturals = new ArrayList<>();
        for (JsonNode element : elements(field)) {
            boolean fits = element.isIntegralNumber() && element.canConvertToLong();
            require(field, fits && element.longValue() >= 0, "integers from 0 on");
            naturals.add(element.longValue());
        }
        return naturals;
    }

    private JsonNode elements(String field) {
        JsonNode value = value(field);
        require(field, value.isNull() || value.isArray(), "an array");
        return value;
    }

    private JsonNode value(String field) {
        return has(field) ? node.path(field) : NullNode.getInstance();
    }

    /** A refusal of what is in this object. */
    public ModelException refused(String found, String supported) {
        return new ModelException(
                "read %s: it has %s, supported is %s".formatted(where, found, supported));
    }

    private void require(String field, boolean holds, String wanted) {
        if (!holds) {
            throw new ModelException(
                    "read %s: it is %s, must be %s"
                            .formatted(path(field), describe(value(field)), wanted));
        }
    }

    private ModelException missing(String field, String wanted) {
        return new ModelException(
                "read %s: it is missing, must be %s".formatted(path(field), wanted));
    }

    private String path(String field) {
        return where + " '" + field + "'";
    }

    private static String describe(JsonNode value) {
        if (value.isContainerNode()) {
            return (value.isArray() ? "an array of " : "an object of ") + value.size();
        }
        String text = value.toString();
        return text.length() <= 40 ? text : text.substring(0, 40) + "...";
    }
}
