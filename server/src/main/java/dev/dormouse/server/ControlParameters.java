package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import io.helidon.common.uri.UriQuery;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Parameters of a control endpoint: from the query string, as in vLLM, or from a JSON body. A
 * parameter that is given in both must have the same value in both.
 */
final class ControlParameters {
    private final UriQuery query;
    private final @Nullable RequestBody body;

    ControlParameters(UriQuery query, byte[] body) {
        this.query = query;
        this.body = body.length == 0 ? null : RequestBody.parse(body);
    }

    /** A parameter's single value, or null if it is missing. */
    @Nullable String value(String name) {
        List<String> values = values(name);
        if (values == null) {
            return null;
        }
        if (values.size() != 1) {
            throw ApiException.badRequest(
                    name, name + " has " + values.size() + " values, but must have one");
        }
        return values.getFirst();
    }

    /**
     * All values of a parameter that may be repeated or separated by commas, or null if it is
     * missing.
     */
    @Nullable List<String> values(String name) {
        @Nullable List<String> inQuery = query.contains(name) ? split(query.all(name)) : null;
        @Nullable List<String> inBody = inBody(name);
        if (inQuery != null && inBody != null && !inQuery.equals(inBody)) {
            throw ApiException.badRequest(
                    name,
                    name
                            + " is "
                            + inQuery
                            + " in the query but "
                            + inBody
                            + " in the body; give it once");
        }
        return inQuery != null ? inQuery : inBody;
    }

    private @Nullable List<String> inBody(String name) {
        @Nullable JsonNode node = body == null ? null : body.node(name);
        if (node == null) {
            return null;
        }
        List<String> values = new ArrayList<>();
        if (node.isArray()) {
            node.forEach(element -> values.add(scalar(name, element)));
        } else {
            values.add(scalar(name, node));
        }
        return split(values);
    }

    private static String scalar(String name, JsonNode node) {
        if (!node.isTextual() && !node.isIntegralNumber() && !node.isBoolean()) {
            throw RequestBody.wrongType(name, node, "a string or a number");
        }
        return node.asText();
    }

    private static List<String> split(List<String> values) {
        return values.stream()
                .flatMap(value -> List.of(value.split(",", -1)).stream())
                .map(String::strip)
                .toList();
    }
}
