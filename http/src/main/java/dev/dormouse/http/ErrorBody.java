package dev.dormouse.http;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.jspecify.annotations.Nullable;

/** The body of an error, in the shape of OpenAI's API. */
public final class ErrorBody {
    /** The key of the object that holds everything. */
    public static final String ERROR = "error";

    private ErrorBody() {}

    /**
     * A new body.
     *
     * @param status HTTP status
     * @param code stable name for programs
     * @param param the request's field at fault, or null
     * @param message for people
     */
    public static ObjectNode of(int status, String code, @Nullable String param, String message) {
        ObjectNode body = JsonNodeFactory.instance.objectNode();
        body.putObject(ERROR)
                .put("message", message)
                .put("type", status < 500 ? "invalid_request_error" : "server_error")
                .put("param", param)
                .put("code", code);
        return body;
    }
}
