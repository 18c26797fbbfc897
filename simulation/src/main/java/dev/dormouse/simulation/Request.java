package dev.dormouse.simulation;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.router.routing.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A client's request, as the router gets it.
 *
 * @param id of the request at the router and at the engines
 * @param prompt its tokens
 * @param expected what a plain engine answers
 * @param lastTurn what the client was given with the answer that its prompt goes on from, or null
 * @param plan how it is served
 */
record Request(
        String id,
        List<Integer> prompt,
        List<Integer> expected,
        @Nullable KvTransferParams lastTurn,
        Plan plan) {
    /** What the client asks for besides tokens, and what is demanded of the answer. */
    enum Plan {
        /** All of the answer at once. */
        WHOLE,
        /** Pieces of the answer as they come. */
        STREAMED,
        /** Something that a decode engine serves alone. */
        DETOUR,
        /** An answer, not an error. */
        MUST_SUCCEED
    }

    /** How it ended. */
    enum End {
        /** With every token of the oracle. */
        ANSWERED,
        /** With an explicit error, or an explicit abort. */
        REFUSED
    }

    Request {
        prompt = List.copyOf(prompt);
        expected = List.copyOf(expected);
    }

    /** The same, going on from a last turn. */
    Request after(KvTransferParams turn) {
        return new Request(id, prompt, expected, turn, plan);
    }

    /** What the client sends. */
    byte[] body() {
        ObjectNode body = Json.object();
        ArrayNode tokens = body.putArray("prompt");
        prompt.forEach(tokens::add);
        body.put("max_tokens", expected.size());
        body.put("stream", plan == Plan.STREAMED);
        if (plan == Plan.DETOUR) {
            body.put("prompt_logprobs", 1);
        }
        if (lastTurn != null) {
            body.set("kv_transfer_params", lastTurn.toJson());
        }
        return Json.write(body);
    }
}
