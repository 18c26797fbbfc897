package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What {@code kv_transfer_params} of a finished request say, of a prefill or of what a decode
 * engine holds for a next turn, read and written. The keys are vLLM's; {@code
 * remote_registration_epoch} and {@code remote_instance_id} are this product's. The epoch is
 * written under both of its names and read from either.
 *
 * @param source where the blocks are
 * @param blocks the holder's blocks of the prompt, and of the output that it holds, in order
 * @param tokens tokens whose KV the blocks hold; 0 if the parameters do not tell
 * @param promptTokens how long the producer's prompt was; 0 if the parameters do not tell
 * @param hash of the producer's prompt, or of all tokens that a decode engine holds; null if the
 *     parameters do not tell
 */
record RemoteHandOver(
        RemoteSource source,
        List<Integer> blocks,
        int tokens,
        int promptTokens,
        @Nullable String hash) {
    private static final String ENGINE_ID = "remote_engine_id";
    private static final String INSTANCE_ID = "remote_instance_id";
    private static final String REQUEST_ID = "remote_request_id";
    private static final String HOST = "remote_host";
    private static final String PORT = "remote_port";
    private static final String BLOCK_IDS = "remote_block_ids";
    private static final String TOKENS = "remote_num_tokens";
    private static final String GENERATION = "remote_registration_generation";
    private static final String EPOCH = "remote_registration_epoch";
    private static final String EXPIRY = "remote_blocks_expiry_time";
    private static final String LEASE_DEADLINE = "remote_lease_deadline";
    private static final String LEASE_SECONDS = "remote_lease_seconds";
    private static final String PROMPT_TOKENS = "remote_prompt_tokens";
    static final String PROMPT_HASH = "remote_prompt_hash";
    private static final double MAX_CLOCK_SECONDS = 1e9;
    private static final double MAX_LEASE_SECONDS = 86_400;
    private static final int MAX_ID_CHARS = 4_096;
    private static final int MAX_BLOCKS = 1 << 20;
    private static final int MAX_RANKS = 1_024;

    RemoteHandOver {
        blocks = List.copyOf(blocks);
    }

    /**
     * Reads the parameters of a request.
     *
     * @throws ConnectorException naming the key, its value and what it must be
     */
    static RemoteHandOver read(KvTransferParams params) {
        JsonNode json = params.toJson();
        RemoteSource source =
                new RemoteSource(
                        text(json, ENGINE_ID),
                        textOrNull(json, INSTANCE_ID),
                        requestId(json),
                        host(json),
                        (int) integer(json, PORT, 1, 65_535),
                        (int) integerOr(json, "tp_size", 1, MAX_RANKS, 1),
                        (int) integerOr(json, "pp_size", 1, MAX_RANKS, 1),
                        Math.max(
                                integerOr(json, GENERATION, 0, Long.MAX_VALUE, 0),
                                integerOr(json, EPOCH, 0, Long.MAX_VALUE, 0)),
                        lease(json));
        return new RemoteHandOver(
                source,
                blocks(json.path(BLOCK_IDS)),
                (int) integerOr(json, TOKENS, 0, Integer.MAX_VALUE, 0),
                (int) integerOr(json, PROMPT_TOKENS, 0, Integer.MAX_VALUE, 0),
                textOrNull(json, PROMPT_HASH));
    }

    /** True if the parameters name blocks of another engine. */
    static boolean isNamedBy(KvTransferParams params) {
        JsonNode json = params.toJson();
        return !json.path(BLOCK_IDS).path(0).isEmpty()
                && Stream.of(ENGINE_ID, REQUEST_ID, HOST, PORT).allMatch(json::hasNonNull);
    }

    /**
     * The parameters by which a decode engine finds these blocks of a prefill engine.
     *
     * @param transferMode {@code pull} or {@code push}
     */
    KvTransferParams write(String transferMode) {
        return write(transferMode, true, Double.NaN);
    }

    /**
     * The parameters by which a prefill engine finds these blocks of a decode engine.
     *
     * @param transferMode {@code pull} or {@code push}
     * @param expirySeconds until when they are held at least, on this engine's clock, also for
     *     readers that do not claim them
     */
    KvTransferParams writeForNextTurn(String transferMode, double expirySeconds) {
        return write(transferMode, false, expirySeconds);
    }

    private KvTransferParams write(String transferMode, boolean prefilled, double expirySeconds) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        json.put("do_remote_prefill", prefilled);
        json.put("do_remote_decode", !prefilled);
        ArrayNode group = json.putArray(BLOCK_IDS).addArray();
        blocks.forEach(group::add);
        json.put(ENGINE_ID, source.engineId());
        json.put(REQUEST_ID, source.requestId());
        json.put(HOST, source.host());
        json.put(PORT, source.port());
        json.put("tp_size", source.tpSize());
        json.put("dcp_size", 1);
        json.put("pp_size", source.ppSize());
        json.put(TOKENS, tokens);
        if (transferMode.equals(CompatibilityFactors.PULL)) { // as in vLLM
            json.set(EXPIRY, prefilled ? json.nullNode() : json.numberNode(expirySeconds));
            json.put(GENERATION, source.epoch());
        }
        json.put(EPOCH, source.epoch());
        json.put(INSTANCE_ID, source.instanceId());
        if (source.lease().tellsDeadline()) {
            json.put(LEASE_DEADLINE, source.lease().deadlineSeconds());
            json.put(LEASE_SECONDS, source.lease().lengthSeconds());
        }
        if (promptTokens > 0) {
            json.put(PROMPT_TOKENS, promptTokens);
        }
        if (hash != null) {
            json.put(PROMPT_HASH, hash);
        }
        json.put("transfer_mode", transferMode);
        return KvTransferParams.of(json);
    }

    private static List<Integer> blocks(JsonNode groups) {
        if (!groups.isArray() || groups.size() > 1) {
            throw wrong(BLOCK_IDS, groups, "a list with one list of block ids");
        }
        List<Integer> ids = new ArrayList<>();
        for (JsonNode group : groups) {
            if (!group.isArray() || group.size() > MAX_BLOCKS) {
                throw wrong(BLOCK_IDS, group, "a list with one list of block ids");
            }
            for (JsonNode id : group) {
                if (!id.isIntegralNumber() || !id.canConvertToInt() || id.intValue() < 0) {
                    throw wrong(BLOCK_IDS, id, "a block id");
                }
                ids.add(id.intValue());
            }
        }
        return ids;
    }

    /** The lease: this product's keys, else the one in which vLLM's decode engines tell theirs. */
    private static RemoteLease lease(JsonNode json) {
        double own =
                number(json, LEASE_DEADLINE, -MAX_CLOCK_SECONDS, MAX_CLOCK_SECONDS, Double.NaN);
        return new RemoteLease(
                Double.isNaN(own)
                        ? number(json, EXPIRY, -MAX_CLOCK_SECONDS, MAX_CLOCK_SECONDS, Double.NaN)
                        : own,
                number(json, LEASE_SECONDS, 0, MAX_LEASE_SECONDS, 0));
    }

    private static String requestId(JsonNode json) {
        String id = text(json, REQUEST_ID);
        if (id.getBytes(UTF_8).length > HoldQuestion.MAX_ID_BYTES) {
            throw wrong(
                    REQUEST_ID,
                    json.path(REQUEST_ID),
                    "at most " + HoldQuestion.MAX_ID_BYTES + " bytes");
        }
        return id;
    }

    private static String host(JsonNode json) {
        String host = text(json, HOST);
        if (!SideChannelAddress.isValid(host, 0)) {
            throw wrong(HOST, json.path(HOST), "a host name or address");
        }
        return host;
    }

    private static String text(JsonNode json, String key) {
        String value = textOrNull(json, key);
        if (value == null) {
            throw wrong(key, json.path(key), "present");
        }
        return value;
    }

    private static @Nullable String textOrNull(JsonNode json, String key) {
        JsonNode value = json.path(key);
        if (value.isMissingNode() || value.isNull()) {
            return null;
        }
        String text = value.textValue();
        if (text == null || text.isEmpty() || text.length() > MAX_ID_CHARS) {
            throw wrong(key, value, "a string of 1 to " + MAX_ID_CHARS + " characters");
        }
        return text;
    }

    private static long integerOr(JsonNode json, String key, long min, long max, long fallback) {
        JsonNode value = json.path(key);
        return value.isMissingNode() || value.isNull() ? fallback : integer(json, key, min, max);
    }

    private static long integer(JsonNode json, String key, long min, long max) {
        JsonNode value = json.path(key);
        if (!value.isIntegralNumber()
                || !value.canConvertToLong()
                || value.longValue() < min
                || value.longValue() > max) {
            throw wrong(key, value, "an integer between " + min + " and " + max);
        }
        return value.longValue();
    }

    private static double number(
            JsonNode json, String key, double min, double max, double fallback) {
        JsonNode value = json.path(key);
        if (value.isMissingNode() || value.isNull()) {
            return fallback;
        }
        double number = value.doubleValue();
        if (!value.isNumber() || !(number >= min && number <= max)) {
            throw wrong(key, value, "a number between " + min + " and " + max);
        }
        return number;
    }

    private static ConnectorException wrong(String key, JsonNode value, String must) {
        return new ConnectorException(
                "kv_transfer_params: "
                        + key
                        + " is "
                        + (value.isMissingNode() ? "missing" : Excerpt.of(value.toString()))
                        + ", but must be "
                        + must);
    }
}
