package dev.dormouse.router.routing;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;

/** What a prefill engine says that has succeeded. */
public sealed interface PrefillAnswer {
    /**
     * It holds the prompt's KV.
     *
     * @param params tell the decode engine where
     */
    record HandedOver(JsonNode params) implements PrefillAnswer {}

    /**
     * It holds nothing.
     *
     * @param stopped whether the prompt's first token ended the text
     */
    record NothingHandedOver(boolean stopped) implements PrefillAnswer {}

    /** It ended the request by itself, as it does when it pauses or falls asleep. */
    record Aborted() implements PrefillAnswer {}

    /**
     * It makes no sense.
     *
     * @param cause for people
     */
    record Unusable(String cause) implements PrefillAnswer {}

    /**
     * Reads the body of an answer.
     *
     * @param maxBytes longer ones are unusable
     */
    static PrefillAnswer read(byte[] bytes, int maxBytes) {
        if (bytes.length > maxBytes) {
            return new Unusable("answer longer than " + maxBytes + " bytes");
        }
        JsonNode answer;
        try {
            answer = Json.read(bytes);
        } catch (IOException e) {
            return new Unusable(String.valueOf(e.getMessage()));
        }
        JsonNode params = answer.path("kv_transfer_params");
        boolean nothing =
                params.isMissingNode()
                        || params.isNull()
                        || (params.isObject() && params.isEmpty());
        if (!nothing) {
            return new HandedOver(params);
        }
        String finish = answer.path("choices").path(0).path("finish_reason").asText();
        return finish.equals("abort")
                ? new Aborted()
                : new NothingHandedOver(finish.equals("stop"));
    }

    /** How the leg has ended by it. */
    default Outcome outcome() {
        return switch (this) {
            case HandedOver _, NothingHandedOver _ -> Outcome.OK;
            case Aborted _ -> Outcome.FAILED;
            case Unusable _ -> Outcome.BROKEN;
        };
    }
}
