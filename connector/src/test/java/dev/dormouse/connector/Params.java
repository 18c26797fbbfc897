package dev.dormouse.connector;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.Consumer;

/** Makes {@code kv_transfer_params} as routers and clients do, and settings. */
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

    /** Parameters of a prompt of 10 tokens in blocks 7, 3 and 9 of engine P, then changed. */
    static KvTransferParams remote(Consumer<ObjectNode> change) {
        RemoteSource source = new RemoteSource("P", "pi", "p1", "127.0.0.1", 5600, 1, 1, 4);
        return changed(
                new RemoteHandOver(source, List.of(7, 3, 9), 10, 0, null).write("pull"), change);
    }

    /** Settings of an engine that is alone in the world. */
    static ConnectorConfig.Builder config(String engineId) {
        return ConnectorConfig.builder(ModelEngine.FACTORS, ModelEngine.BLOCK_TOKENS)
                .engineId(engineId)
                .instanceId("i")
                .bindHost("127.0.0.1")
                .sideChannelPort(0);
    }
}
