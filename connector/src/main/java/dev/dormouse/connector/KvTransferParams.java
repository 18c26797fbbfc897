package dev.dormouse.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The {@code kv_transfer_params} of a request or a response: a JSON object that routers carry
 * unchanged. Unknown keys survive. Immutable.
 */
public final class KvTransferParams {
    private final ObjectNode json;

    private KvTransferParams(ObjectNode json) {
        this.json = json;
    }

    /**
     * Wraps a copy of {@code json}.
     *
     * @throws ConnectorException if it is not an object
     */
    public static KvTransferParams of(JsonNode json) {
        if (!(json instanceof ObjectNode object)) {
            throw new ConnectorException(
                    "kv_transfer_params must be a JSON object, but is " + json.getNodeType());
        }
        return new KvTransferParams(object.deepCopy());
    }

    /** A copy, for a response. */
    public ObjectNode toJson() {
        return json.deepCopy();
    }

    /** True if another engine holds this prompt's KV: this engine shall read it. */
    public boolean remotePrefill() {
        return json.path("do_remote_prefill").asBoolean(false);
    }

    /** True if another engine will decode: this engine shall hold the prompt's KV for it. */
    public boolean remoteDecode() {
        return json.path("do_remote_decode").asBoolean(false);
    }
}
