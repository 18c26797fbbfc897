package dev.dormouse.router.routing;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.http.JsonBodies;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * Reads and writes JSON trees without touching their values: integers of any size and the digits of
 * decimal numbers survive. Jackson's default limits on depth and number length hold.
 */
public final class Json {
    private static final JsonMapper MAPPER =
            JsonMapper.builder()
                    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
                    .build();

    private Json() {}

    /** An empty object. */
    public static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    /**
     * Reads one JSON value.
     *
     * @throws IOException if the bytes are not exactly one JSON value; the message says why
     */
    public static JsonNode read(byte[] bytes) throws IOException {
        try {
            // Unlike readTree, this refuses empty input.
            return MAPPER.readValue(bytes, JsonNode.class);
        } catch (JsonProcessingException e) {
            throw new IOException(JsonBodies.fault(e), e);
        } catch (NumberFormatException e) {
            // Jackson lets this one through for an exponent of very many digits.
            throw new IOException("not valid JSON: " + e.getMessage(), e);
        }
    }

    /** Writes UTF-8; half of a surrogate pair comes out as the escape it came in as. */
    public static byte[] write(JsonNode node) {
        try {
            return MAPPER.writeValueAsBytes(node);
        } catch (JsonProcessingException e) {
            throw new UncheckedIOException("writing JSON to memory failed", e);
        }
    }
}
