package dev.dormouse.cli.soak;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Json;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What an answer says.
 *
 * @param texts of each choice
 * @param reasons of each choice; null for one that has not ended
 * @param error an error's code, or null
 */
record Reply(List<String> texts, List<@Nullable String> reasons, @Nullable String error) {
    /** Of a body that is one JSON object. */
    static Reply whole(String body) {
        JsonNode json = Json.parse(body);
        if (json.has("error")) {
            return new Reply(List.of(), List.of(), json.path("error").path("code").asText());
        }
        Reply reply = new Reply(new ArrayList<>(), new ArrayList<>(), null);
        json.path("choices").forEach(reply::add);
        return reply;
    }

    /**
     * Of a body that is a stream of events.
     *
     * @throws IllegalArgumentException if it ends neither with the mark nor with an error
     */
    static Reply streamed(String body) {
        Reply reply = new Reply(new ArrayList<>(), new ArrayList<>(), null);
        for (String event : body.split("\n\n", -1)) {
            if (!event.startsWith("data: ")) {
                throw new IllegalArgumentException("not an event: " + event);
            }
            String data = event.substring("data: ".length());
            if (data.equals("[DONE]")) {
                return reply;
            }
            JsonNode json = Json.parse(data);
            if (json.has("error")) {
                return new Reply(
                        reply.texts, reply.reasons, json.path("error").path("code").asText());
            }
            json.path("choices").forEach(reply::add);
        }
        throw new IllegalArgumentException("the stream ended without a word: " + body);
    }

    private void add(JsonNode choice) {
        int index = choice.path("index").asInt();
        while (texts.size() <= index) {
            texts.add("");
            reasons.add(null);
        }
        String piece =
                choice.has("delta")
                        ? choice.path("delta").path("content").asText("")
                        : choice.path("message")
                                .path("content")
                                .asText(choice.path("text").asText());
        texts.set(index, texts.get(index) + piece);
        if (choice.hasNonNull("finish_reason")) {
            reasons.set(index, choice.path("finish_reason").asText());
        }
    }
}
