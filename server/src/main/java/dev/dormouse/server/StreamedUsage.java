package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;

/** Which events of a stream tell token counts. */
enum StreamedUsage {
    /** None. */
    NEVER,
    /** One more, at the end. */
    AT_END,
    /** All of them, and one more at the end. */
    ALWAYS;

    /** Reads {@code stream_options}. */
    static StreamedUsage of(RequestBody body, boolean stream) {
        JsonNode options = body.node("stream_options");
        if (options == null) {
            return NEVER;
        }
        if (!options.isObject()) {
            throw RequestBody.wrongType("stream_options", options, "an object");
        }
        if (!stream && !options.isEmpty()) {
            throw ApiException.badRequest(
                    "stream_options", "stream_options needs stream to be true");
        }
        boolean include = flag(options, "include_usage");
        boolean continuous = flag(options, "continuous_usage_stats");
        return include ? continuous ? ALWAYS : AT_END : NEVER;
    }

    private static boolean flag(JsonNode options, String name) {
        JsonNode value = options.path(name);
        if (value.isMissingNode() || value.isNull()) {
            return false;
        }
        if (!value.isBoolean()) {
            throw RequestBody.wrongType("stream_options." + name, value, "true or false");
        }
        return value.booleanValue();
    }
}
