package dev.dormouse.server;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.http.JsonBodies;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A request's JSON object with typed access. A field that is missing or null has its default; one
 * of another type is a 400 that names the field, what it is, and what it must be.
 */
final class RequestBody {
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private final ObjectNode json;

    private RequestBody(ObjectNode json) {
        this.json = json;
    }

    static RequestBody parse(byte[] bytes) {
        try {
            JsonNode node = JSON.readTree(bytes);
            if (node instanceof ObjectNode object) {
                return new RequestBody(object);
            }
            throw ApiException.badRequest(
                    null, "the body must be a JSON object, but is " + describe(node));
        } catch (JsonProcessingException e) {
            throw ApiException.badRequest(null, "the body is " + JsonBodies.fault(e));
        } catch (IOException e) {
            throw ApiException.badRequest(null, "the body cannot be read: " + e.getMessage());
        }
    }

    /** The JSON that a text is, or a missing node if it is none. */
    static JsonNode tryJson(String text) {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException e) {
            return MissingNode.getInstance();
        }
    }

    /** A JSON value as plain Java: texts, numbers, truth values, null, lists and maps. */
    static @Nullable Object plain(JsonNode node) {
        return JSON.convertValue(node, Object.class);
    }

    /** A field's value, or null if it is missing or JSON's null. */
    @Nullable JsonNode node(String field) {
        JsonNode node = json.get(field);
        return node == null || node.isNull() ? null : node;
    }

    /**
     * Refuses texts that are none: half of a surrogate pair, which JSON can say, stands for no
     * character, and would reach the model as another one.
     */
    void requireUnicode() {
        json.properties()
                .forEach(
                        field -> {
                            if (!isUnicode(field.getValue())) {
                                throw ApiException.badRequest(
                                        field.getKey(),
                                        field.getKey()
                                                + " has half of a surrogate pair, which is no"
                                                + " character; send both halves or neither");
                            }
                        });
    }

    private static boolean isUnicode(JsonNode node) {
        if (node.isTextual()) {
            return isUnicode(node.textValue());
        }
        return node.valueStream().allMatch(RequestBody::isUnicode);
    }

    private static boolean isUnicode(String text) {
        return text.codePoints()
                .noneMatch(c -> c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE);
    }

    /** Refuses these fields, unless they say what leaving them out says: false or nothing. */
    void refuse(List<String> fields) {
        for (String field : fields) {
            JsonNode node = node(field);
            boolean says =
                    node != null && (node.isBoolean() ? node.booleanValue() : !isEmpty(node));
            if (says) {
                throw ApiException.badRequest(field, field + " is not supported; leave it out");
            }
        }
    }

    /** Refuses these fields of an object within the body. */
    static void refuseIn(ObjectNode json, String field, List<String> names) {
        for (String name : names) {
            if (json.hasNonNull(name)) {
                throw ApiException.badRequest(
                        field, field + "." + name + " is not supported; leave it out");
            }
        }
    }

    private static boolean isEmpty(JsonNode node) {
        return node.isTextual()
                ? node.textValue().isEmpty()
                : node.isContainerNode() && node.isEmpty();
    }

    @Nullable String text(String field) {
        JsonNode node = node(field);
        if (node != null && !node.isTextual()) {
            throw wrongType(field, node, "a string");
        }
        return node == null ? null : node.textValue();
    }

    boolean flag(String field, boolean standard) {
        JsonNode node = node(field);
        if (node != null && !node.isBoolean()) {
            throw wrongType(field, node, "true or false");
        }
        return node == null ? standard : node.booleanValue();
    }

    double number(String field, double standard) {
        JsonNode node = node(field);
        if (node != null && !node.isNumber()) {
            throw wrongType(field, node, "a number");
        }
        return node == null ? standard : node.doubleValue();
    }

    @Nullable Long integer(String field) {
        JsonNode node = node(field);
        // Some clients know no integers: 5.0 is one.
        if (node != null
                && !(node.isNumber()
                        && node.canConvertToExactIntegral()
                        && node.canConvertToLong())) {
            throw wrongType(field, node, "an integer");
        }
        return node == null ? null : node.longValue();
    }

    int integer(String field, int standard) {
        Long value = integer(field);
        if (value == null) {
            return standard;
        }
        if (value < Integer.MIN_VALUE || value > Integer.MAX_VALUE) {
            throw ApiException.badRequest(
                    field, field + " is " + value + ", which is out of range");
        }
        return value.intValue();
    }

    /** A JSON object. */
    @Nullable ObjectNode object(String field) {
        JsonNode node = node(field);
        if (node == null || node instanceof ObjectNode) {
            return (ObjectNode) node;
        }
        throw wrongType(field, node, "an object");
    }

    /** A JSON array. */
    @Nullable JsonNode list(String field) {
        JsonNode node = node(field);
        if (node != null) {
            requireArray(field, node, "a list");
        }
        return node;
    }

    /** A list of strings, which may also be given as one string. */
    List<String> texts(String field) {
        JsonNode node = node(field);
        List<String> texts = new ArrayList<>();
        if (node != null && node.isTextual()) {
            texts.add(node.textValue());
        } else if (node != null) {
            requireArray(field, node, "a string or a list of strings");
            for (JsonNode element : node) {
                if (!element.isTextual()) {
                    throw wrongType(field, element, "a string or a list of strings");
                }
                texts.add(element.textValue());
            }
        }
        return texts;
    }

    List<Integer> integers(String field) {
        JsonNode node = node(field);
        if (node == null) {
            return List.of();
        }
        requireArray(field, node, "a list of integers");
        return integers(field, node, 0, node.size());
    }

    /** Some elements of a list. */
    static List<Integer> integers(String field, JsonNode list, int from, int to) {
        List<Integer> integers = new ArrayList<>(to - from);
        for (int i = from; i < to; i++) {
            JsonNode element = list.get(i);
            if (!element.isIntegralNumber() || !element.canConvertToInt()) {
                throw wrongType(field, element, "a list of integers");
            }
            integers.add(element.intValue());
        }
        return integers;
    }

    static void requireArray(String field, JsonNode node, String expected) {
        if (!node.isArray()) {
            throw wrongType(field, node, expected);
        }
    }

    static ApiException wrongType(String field, JsonNode found, String expected) {
        return ApiException.badRequest(
                field, field + " must be " + expected + ", but has " + describe(found));
    }

    private static String describe(JsonNode node) {
        String text = node.toString();
        return node.getNodeType().name().toLowerCase(java.util.Locale.ROOT)
                + " "
                + (text.length() > 40 ? text.substring(0, 40) + "…" : text);
    }
}
