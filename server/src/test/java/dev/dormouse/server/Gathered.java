package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.TreeMap;

/** The whole answer that the events of a stream make, as a client would put it together. */
final class Gathered {
    private Gathered() {}

    static ObjectNode completion(List<JsonNode> events) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        TreeMap<Integer, ObjectNode> choices = new TreeMap<>();
        for (JsonNode event : events) {
            for (JsonNode piece : event.path("choices")) {
                ObjectNode choice =
                        choices.computeIfAbsent(
                                piece.path("index").asInt(),
                                index ->
                                        JsonNodeFactory.instance
                                                .objectNode()
                                                .put("index", index)
                                                .put("text", ""));
                choice.put("text", choice.path("text").asText() + piece.path("text").asText());
                append(choice, piece, "token_ids");
                if (piece.hasNonNull("logprobs")) {
                    ObjectNode logprobs = choice.withObject("/logprobs");
                    piece.path("logprobs")
                            .fieldNames()
                            .forEachRemaining(
                                    name -> append(logprobs, piece.path("logprobs"), name));
                }
                choice.set("finish_reason", piece.path("finish_reason"));
                choice.set("stop_reason", piece.path("stop_reason"));
            }
            if (event.has("usage")) {
                answer.set("usage", event.path("usage"));
            }
        }
        ArrayNode list = answer.putArray("choices");
        choices.values().forEach(list::add);
        return answer;
    }

    private static void append(ObjectNode to, JsonNode from, String name) {
        from.path(name).forEach(element -> to.withArray("/" + name).add(element));
    }
}
