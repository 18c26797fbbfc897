package dev.dormouse.cli.bench.serve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import java.util.List;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Prompts of random words, each drawn anew, so that no prefix cache has a block of them; unless the
 * server has been asked with the same seed before.
 *
 * <p>If the server has {@code /tokenize}, as those of Dormouse, vLLM and llama.cpp have, a prompt
 * is sent as exactly so many token ids. Otherwise, as through a router, it is text, and the server
 * has said how many tokens a hundred words are; the answers' usage says what they were.
 */
public final class Prompts {
    /** Short, common, and one or two tokens each with any tokenizer. */
    private static final List<String> WORDS =
            List.of(
                    "the", "of", "and", "a", "to", "in", "is", "you", "that", "it", "he", "was",
                    "for", "on", "are", "as", "with", "his", "they", "at", "be", "this", "have",
                    "from", "or", "one", "had", "by", "word", "but", "not", "what", "all", "were",
                    "we", "when", "your", "can", "said", "there", "use", "an", "each", "which",
                    "she", "do", "how", "their", "if", "will", "up", "other", "about", "out",
                    "many", "then", "them", "these", "so", "some", "her", "would", "make", "like");

    private static final int SAMPLE_WORDS = 100;

    private final LoadClient server;
    private final RandomGenerator random;
    private final boolean tokenizes;

    /** Tokens of {@link #SAMPLE_WORDS} words, if the server does not tokenize. */
    private final int sampleTokens;

    private Prompts(LoadClient server, RandomGenerator random, boolean tokenizes) {
        this.server = server;
        this.random = random;
        this.tokenizes = tokenizes;
        this.sampleTokens = tokenizes ? 0 : sample();
    }

    /** Prompts for a server. */
    public static Prompts of(LoadClient server, RandomGenerator random) {
        boolean tokenizes;
        try {
            tokenizes = tokenize(server, "one two three").size() > 0;
        } catch (FleetException e) {
            tokenizes = false;
        }
        return new Prompts(server, random, tokenizes);
    }

    /** Whether prompts have exactly as many tokens as they should. */
    boolean exact() {
        return tokenizes;
    }

    /** The next ones, as the field {@code prompt} takes them. */
    public List<JsonNode> next(int count, int tokens) {
        return IntStream.range(0, count).mapToObj(_ -> next(tokens)).toList();
    }

    private JsonNode next(int tokens) {
        if (!tokenizes) {
            int words = Math.max(1, Math.round((float) tokens * SAMPLE_WORDS / sampleTokens));
            return Json.MAPPER.getNodeFactory().textNode(text(words));
        }
        JsonNode all = tokenize(server, text(tokens));
        if (all.size() < tokens) {
            throw new FleetException(
                    "%d words are %d tokens to the server, expected at least as many"
                            .formatted(tokens, all.size()));
        }
        ArrayNode prompt = Json.MAPPER.createArrayNode();
        for (int i = 0; i < tokens; i++) {
            prompt.add(all.get(i));
        }
        return prompt;
    }

    private int sample() {
        JsonNode prompt = Json.MAPPER.getNodeFactory().textNode(text(SAMPLE_WORDS));
        return switch (server.complete(prompt, 1)) {
            case Answer.Served served -> Math.max(1, served.promptTokens());
            case Answer.Failed(String reason) -> throw new FleetException(reason);
        };
    }

    private String text(int words) {
        return Stream.generate(() -> WORDS.get(random.nextInt(WORDS.size())))
                .limit(words)
                .collect(Collectors.joining(" "));
    }

    /** The text has another name in vLLM, whose name is ours, than in llama.cpp. */
    private static JsonNode tokenize(LoadClient server, String text) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("model", server.model()).put("prompt", text).put("content", text);
        return server.json("/tokenize", body).path("tokens");
    }
}
