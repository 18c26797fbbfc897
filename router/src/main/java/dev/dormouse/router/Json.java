package dev.dormouse.router;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;

/**
 * Reads and writes JSON trees without touching their values: integers of any size and the digits of
 * decimal numbers survive. Jackson's default limits on depth and number length hold.
 */
final class Json {
    private static final JsonMapper MAPPER =
            JsonMapper.builder()
                    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
                    .build();

    private Json() {}

    /** An empty object. */
    static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    /**
     * Reads one JSON value.
     *
     * @throws IOException if the bytes are not exactly one JSON value
     */
    static JsonNode read(byte[] bytes) throws IOException {
        return MAPPER.readTree(bytes);
    }

    /**
     * Writes UTF-8.
     *
     * @throws JsonProcessingException if a string holds half of a surrogate pair
     */
    static byte[] write(JsonNode node) throws JsonProcessingException {
        return MAPPER.writeValueAsBytes(node);
    }
}
