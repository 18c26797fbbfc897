package dev.dormouse.cli.soak;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.Json;
import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * A request whose answer is determined, greedy or drawn from a seed, and that answer.
 *
 * @param path the endpoint
 * @param body without {@code stream}
 * @param texts the oracle's, one for each choice
 */
record Question(String path, ObjectNode body, List<String> texts) {
    static final String COMPLETIONS = "/v1/completions";
    static final String CHAT = "/v1/chat/completions";

    /** Above what the tiny model has of tokens that are no control tokens, none. */
    private static final int PLAIN_TOKENS = 256;

    private static final String[] WORDS = {
        "the ",
        "dormouse ",
        "sleeps ",
        "from ",
        "October ",
        "to ",
        "April, ",
        "and ",
        "wakes ",
        "with ",
        "every ",
        "token ",
        "that ",
        "it ",
        "knew ",
        "über ",
        "né ",
        "42 ",
        "\n"
    };

    /** {@code count} of them, with an oracle's answers. */
    static List<Question> ask(Endpoint oracle, int count, RandomGenerator random) {
        List<Question> questions = new ArrayList<>();
        List<List<Integer>> beginnings = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            beginnings.add(tokens(64, random));
        }
        for (int i = 0; i < count; i++) {
            boolean chat = i % 4 == 0;
            ObjectNode body = chat ? chat(random) : completion(i, beginnings, random);
            String path = chat ? CHAT : COMPLETIONS;
            questions.add(
                    new Question(
                            path, body, Reply.whole(oracle.post(path, body).toString()).texts()));
        }
        return questions;
    }

    private static ObjectNode chat(RandomGenerator random) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        ArrayNode messages = body.putArray("messages");
        if (random.nextBoolean()) {
            messages.addObject().put("role", "system").put("content", words(6, random));
        }
        messages.addObject().put("role", "user").put("content", words(12, random));
        body.put("max_completion_tokens", random.nextInt(1, 32));
        return drawn(body, random);
    }

    private static ObjectNode completion(
            int index, List<List<Integer>> beginnings, RandomGenerator random) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("max_tokens", random.nextInt(1, 40)).put("ignore_eos", random.nextBoolean());
        switch (index % 8) {
            case 1, 2 -> body.put("prompt", words(random.nextInt(1, 24), random));
            case 3 -> body.set("prompt", Json.MAPPER.valueToTree(tokens(48, random)));
            case 5 -> {
                List<Integer> prompt =
                        new ArrayList<>(beginnings.get(random.nextInt(beginnings.size())));
                prompt.addAll(tokens(random.nextInt(1, 140), random));
                body.set("prompt", Json.MAPPER.valueToTree(prompt));
            }
            case 6 -> body.put("prompt", words(8, random)).put("n", random.nextInt(2, 5));
            default -> {
                ArrayNode prompts = body.putArray("prompt");
                for (int i = random.nextInt(2, 5); i > 0; i--) {
                    prompts.add(words(random.nextInt(1, 12), random));
                }
            }
        }
        return drawn(body, random);
    }

    private static ObjectNode drawn(ObjectNode body, RandomGenerator random) {
        boolean greedy = random.nextInt(4) > 0;
        return greedy
                ? body.put("temperature", 0)
                : body.put("temperature", 1.0).put("seed", random.nextInt(1000));
    }

    private static List<Integer> tokens(int count, RandomGenerator random) {
        return random.ints(count, 0, PLAIN_TOKENS).boxed().toList();
    }

    private static String words(int count, RandomGenerator random) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append(WORDS[random.nextInt(WORDS.length)]);
        }
        return text.toString();
    }

    /** The request's body, for an answer that comes at once or piece by piece. */
    String body(boolean stream) {
        return stream ? body.deepCopy().put("stream", true).toString() : body.toString();
    }

    /** What it is, for a report. */
    String kind() {
        JsonNode prompt = body.path("prompt");
        if (path.equals(CHAT)) {
            return "chat";
        }
        if (body.has("n")) {
            return "n>1";
        }
        if (prompt.isTextual()) {
            return "text";
        }
        return prompt.path(0).isTextual() ? "prompts" : prompt.size() > 60 ? "long" : "tokens";
    }
}
