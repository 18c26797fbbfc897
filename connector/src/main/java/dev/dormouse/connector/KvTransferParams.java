package dev.dormouse.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * The {@code kv_transfer_params} of a request or a response: a JSON object that routers carry
 * unchanged. Unknown keys survive. Immutable.
 */
public final class KvTransferParams {
    private static final String PREFILL_CACHED_TOKENS = "remote_prefill_cached_tokens";

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

    /**
     * What is wrong with the parameters of a request that this engine shall read, for an early
     * answer to the client: key, value, and what it must be. An engine that admits such a request
     * computes its prompt itself.
     *
     * @return null if they are in order, or ask for no read
     */
    public @Nullable String problem() {
        if (!remotePrefill()) {
            return null;
        }
        try {
            var _ = RemoteHandOver.read(this);
            return null;
        } catch (ConnectorException e) {
            return e.getMessage();
        }
    }

    /** A copy, for a response. */
    public ObjectNode toJson() {
        return json.deepCopy();
    }

    /**
     * These parameters with how many of the prompt's tokens their writer had cached, for the usage
     * that the reader reports; vLLM's {@code remote_prefill_cached_tokens}.
     */
    public KvTransferParams withPrefillCachedTokens(int tokens) {
        ObjectNode copy = json.deepCopy();
        copy.put(PREFILL_CACHED_TOKENS, tokens);
        return new KvTransferParams(copy);
    }

    /** How many of the prompt's tokens the holder had cached, if that is told and not negative. */
    public OptionalInt prefillCachedTokens() {
        JsonNode told = json.path(PREFILL_CACHED_TOKENS);
        return told.isIntegralNumber() && told.canConvertToInt() && told.intValue() >= 0
                ? OptionalInt.of(told.intValue())
                : OptionalInt.empty();
    }

    /** True if another engine holds this prompt's KV: this engine shall read it. */
    public boolean remotePrefill() {
        return json.path("do_remote_prefill").asBoolean(false);
    }

    /** How the holder wants its blocks to move, {@code pull} or {@code push}; null for any way. */
    @Nullable String transferMode() {
        return json.path("transfer_mode").textValue();
    }

    /** True if another engine will decode: this engine shall hold the prompt's KV for it. */
    public boolean remoteDecode() {
        return json.path("do_remote_decode").asBoolean(false);
    }
}
