package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.model.chat.ChatTemplate;
import org.jspecify.annotations.Nullable;

/**
 * The tools of a chat request.
 *
 * @param declared what the template writes of them; null for none
 * @param maxCalls calls that the answer may have; 0 if it is not searched for any
 */
record ToolFields(@Nullable Object declared, int maxCalls) {
    /** Reads {@code tools}, {@code tool_choice} and {@code parallel_tool_calls}. */
    static ToolFields read(RequestBody body, ChatTemplate template) {
        JsonNode tools = body.list("tools");
        if (tools == null || tools.isEmpty()) {
            var _ = choice(body, "since there are no tools");
            return new ToolFields(null, 0);
        }
        boolean searches = choice(body, "since a call cannot be forced here").equals("auto");
        for (JsonNode tool : tools) {
            if (!"function".equals(tool.path("type").asText())
                    || !tool.path("function").path("name").isTextual()) {
                throw ApiException.badRequest(
                        "tools",
                        "each of tools must have the type function, and a function with a name");
            }
        }
        if (searches && !template.mentions("tools")) {
            throw ApiException.badRequest(
                    "tools",
                    "the model's chat template tells it nothing of tools; leave them out, or set tool_choice to none");
        }
        int maxCalls = body.flag("parallel_tool_calls", true) ? Integer.MAX_VALUE : 1;
        boolean known = template.mentions(ToolCallPieces.BEGIN);
        return new ToolFields(RequestBody.plain(tools), searches && known ? maxCalls : 0);
    }

    private static String choice(RequestBody body, String why) {
        JsonNode choice = body.node("tool_choice");
        String name = choice == null ? "auto" : choice.asText();
        if (!name.equals("none") && !name.equals("auto")) {
            throw ApiException.badRequest(
                    "tool_choice", "tool_choice must be none or auto, " + why);
        }
        return name;
    }
}
