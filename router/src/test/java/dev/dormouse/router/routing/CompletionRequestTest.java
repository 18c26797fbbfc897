package dev.dormouse.router.routing;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.testkit.Seeded;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class CompletionRequestTest {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    @Test
    void anyHandOverReachesDecodeBesideTheUntouchedBody() {
        Seeded.forAll(
                300,
                random -> {
                    ObjectNode body = randomObject(random, 3);
                    JsonNode params = randomValue(random, 4);
                    CompletionRequest request = CompletionRequest.parse(Json.write(body), false);

                    ObjectNode decode = request.decodeBody(params);
                    assertThat(text(decode.remove("kv_transfer_params"))).isEqualTo(text(params));
                    assertThat(text(decode)).isEqualTo(text(body));
                    assertThat(text(request.plainBody())).isEqualTo(text(body));
                });
    }

    @Test
    void prefillBodyDiffersOnlyInWhatMakesItOneTokenForAnotherEngine() {
        List<String> changed =
                List.of(
                        "max_tokens",
                        "max_completion_tokens",
                        "stream",
                        "ignore_eos",
                        "kv_transfer_params");
        List<String> removed =
                List.of(
                        "stream_options",
                        "min_tokens",
                        "min_completion_tokens",
                        "stop",
                        "stop_token_ids",
                        "include_stop_str_in_output",
                        "echo",
                        "logprobs",
                        "top_logprobs",
                        "return_token_ids");
        Seeded.forAll(
                200,
                random -> {
                    ObjectNode body = randomObject(random, 2);
                    for (String name : changed) {
                        if (random.nextBoolean()) {
                            body.set(name, randomValue(random, 1));
                        }
                    }
                    for (String name : removed) {
                        if (random.nextBoolean()) {
                            body.set(name, randomValue(random, 1));
                        }
                    }

                    ObjectNode prefill =
                            CompletionRequest.parse(Json.write(body), false).prefillBody();
                    assertThat(prefill.get("max_tokens")).isEqualTo(JSON.numberNode(1));
                    assertThat(prefill.get("stream")).isEqualTo(JSON.booleanNode(false));
                    assertThat(prefill.get("ignore_eos")).isEqualTo(JSON.booleanNode(true));
                    assertThat(prefill.get("max_completion_tokens"))
                            .isEqualTo(
                                    body.has("max_completion_tokens") ? JSON.numberNode(1) : null);
                    assertThat(prefill.at("/kv_transfer_params/do_remote_decode").asBoolean())
                            .isTrue();
                    prefill.remove(changed);
                    body.remove(changed);
                    body.remove(removed);
                    assertThat(text(prefill)).isEqualTo(text(body));
                });
    }

    /** Text, since equal numbers may be nodes of different types. */
    private static String text(JsonNode node) {
        return new String(Json.write(node), StandardCharsets.UTF_8);
    }

    private static ObjectNode randomObject(SplittableRandom random, int depth) {
        ObjectNode object = JSON.objectNode();
        for (int i = random.nextInt(5); i > 0; i--) {
            object.set(
                    "k\u00e9\ud83d\ude00" + random.nextInt(1000), randomValue(random, depth - 1));
        }
        return object;
    }

    private static JsonNode randomValue(SplittableRandom random, int depth) {
        return switch (random.nextInt(depth > 0 ? 8 : 6)) {
            case 0 -> JSON.nullNode();
            case 1 -> JSON.booleanNode(random.nextBoolean());
            case 2 -> JSON.numberNode(random.nextInt());
            case 3 -> JSON.numberNode(new BigInteger(String.valueOf(random.nextLong()) + "0123"));
            case 4 ->
                    JSON.numberNode(
                            new BigDecimal(
                                    BigInteger.valueOf(random.nextLong()), random.nextInt(-9, 40)));
            case 5 -> JSON.textNode("s\"\\\n\u0000\u20ac" + random.nextInt());
            case 6 -> randomObject(random, depth);
            default -> {
                ArrayNode array = JSON.arrayNode();
                for (int i = random.nextInt(4); i > 0; i--) {
                    array.add(randomValue(random, depth - 1));
                }
                yield array;
            }
        };
    }
}
