package dev.dormouse.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.OptionalInt;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The {@code kv_transfer_params} of a request or a response: a JSON object that routers carry
 * unchanged. Unknown keys survive. Immutable.
 */
public final class KvTransferParams {
    private static final String PREFILL_CACHED_TOKENS = "remote_prefill_cached_tokens";
    private static final String FIRST_TOKEN_ID = "remote_first_token_id";
    private static final String FIRST_TOKEN_SAMPLING = "remote_first_token_sampling";

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
        return with(copy -> copy.put(PREFILL_CACHED_TOKENS, tokens));
    }

    /** How many of the prompt's tokens the holder had cached, if that is told and not negative. */
    public OptionalInt prefillCachedTokens() {
        return told(PREFILL_CACHED_TOKENS);
    }

    /** A number that is not negative; anything else is as good as not told. */
    private OptionalInt told(String key) {
        JsonNode value = json.path(key);
        return value.isIntegralNumber() && value.canConvertToInt() && value.intValue() >= 0
                ? OptionalInt.of(value.intValue())
                : OptionalInt.empty();
    }

    /** The values are shared: nobody ever changes one. */
    private KvTransferParams with(Consumer<ObjectNode> change) {
        ObjectNode copy = json.objectNode();
        copy.setAll(json);
        change.accept(copy);
        return new KvTransferParams(copy);
    }

    /**
     * These parameters with the output's first token, which their writer chose behind the prompt,
     * so that the reader need not compute the prompt's last token to choose it again.
     *
     * @param sampling all that the choice depends on besides prompt and model, in a form of the
     *     engines' own
     */
    public KvTransferParams withFirstToken(int tokenId, String sampling) {
        return with(copy -> copy.put(FIRST_TOKEN_ID, tokenId).put(FIRST_TOKEN_SAMPLING, sampling));
    }

    /**
     * The output's first token, if whoever holds the prompt told it, not negative, and chose it by
     * the very same sampling. Empty as well if the prompt's hash is not told: a read of another
     * prompt is refused by it.
     */
    public OptionalInt firstToken(String sampling) {
        return remotePrefill()
                        && json.path(RemoteHandOver.PROMPT_HASH).isTextual()
                        && sampling.equals(json.path(FIRST_TOKEN_SAMPLING).textValue())
                ? told(FIRST_TOKEN_ID)
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

    /** The same, as if nobody held the prompt's KV. */
    KvTransferParams withoutRemotePrefill() {
        return with(copy -> copy.put("do_remote_prefill", false));
    }

    /** True if another engine will decode: this engine shall hold the prompt's KV for it. */
    public boolean remoteDecode() {
        return json.path("do_remote_decode").asBoolean(false);
    }
}
