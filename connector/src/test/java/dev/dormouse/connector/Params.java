package dev.dormouse.connector;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Consumer;

/** Makes {@code kv_transfer_params} as routers and clients do. */
final class Params {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Params() {}

    /** What a router sends to the prefill engine. */
    static KvTransferParams prefill() {
        return parse(
                "{\"do_remote_decode\": true, \"do_remote_prefill\": false, \"remote_engine_id\": null,"
                        + " \"remote_block_ids\": null, \"remote_host\": null, \"remote_port\": null}");
    }

    static KvTransferParams parse(String json) {
        try {
            return KvTransferParams.of(JSON.readTree(json));
        } catch (JsonProcessingException e) {
            throw new AssertionError(e);
        }
    }

    /** Parameters that somebody has changed on the way. */
    static KvTransferParams changed(KvTransferParams params, Consumer<ObjectNode> change) {
        ObjectNode json = params.toJson();
        change.accept(json);
        return KvTransferParams.of(json);
    }
}
