package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * The answer to a handshake: vLLM's {@code NixlHandshakePayload}, and two keys of this product's
 * that vLLM ignores. Read in two phases: the metadata inside is decoded only after the hash was
 * compared.
 *
 * @param compatibilityHash see {@link CompatibilityFactors}
 * @param agentMetadata encoded {@link AgentMetadata}
 * @param epoch the registration epoch, 0 if the peer tells none
 * @param instanceId the peer's process, null if it tells none
 */
@SuppressWarnings("ArrayRecordComponent") // opaque bytes, never changed
record HandshakePayload(
        String compatibilityHash, byte[] agentMetadata, long epoch, @Nullable String instanceId) {
    static final int MAX_BYTES = AgentMetadataCodec.MAX_BYTES + 4_096;
    private static final int MAX_KEYS = 64;
    private static final int MAX_STRING_BYTES = 1_024;

    byte[] encode() {
        WireWriter out = new WireWriter().map(instanceId == null ? 2 : 4);
        out.string("compatibility_hash").string(compatibilityHash);
        out.string("agent_metadata_bytes").binary(agentMetadata);
        if (instanceId != null) {
            out.string("registration_epoch").integer(epoch);
            out.string("instance_id").string(instanceId);
        }
        return out.bytes();
    }

    /**
     * What is sent instead of a payload that cannot be had: a map that no reader takes for one, so
     * that a reader fails at once instead of waiting for its timeout.
     */
    static byte[] refusal(String reason) {
        return new WireWriter().map(1).string("error").string(reason).bytes();
    }

    /**
     * @throws WireException if the bytes are not a payload, or are a refusal
     */
    static HandshakePayload decode(byte[] bytes) {
        WireReader in = new WireReader("handshake payload", bytes, MAX_BYTES);
        String hash = null;
        byte[] metadata = null;
        long epoch = 0;
        String instanceId = null;
        int entries = in.mapSize("handshake payload", MAX_KEYS);
        for (int i = 0; i < entries; i++) {
            String key = in.string("a key", MAX_STRING_BYTES);
            switch (key) {
                case "compatibility_hash" -> hash = in.string(key, MAX_STRING_BYTES);
                case "agent_metadata_bytes" -> metadata = in.binary(key, MAX_BYTES);
                case "registration_epoch" -> epoch = in.integer(key, 0, Long.MAX_VALUE);
                case "instance_id" -> instanceId = in.string(key, MAX_STRING_BYTES);
                case "error" ->
                        throw new WireException(
                                "handshake refused by the peer: "
                                        + in.string(key, MAX_STRING_BYTES));
                default -> in.skip("an unknown key");
            }
        }
        in.end();
        if (hash == null || metadata == null) {
            throw in.fault(
                    "key "
                            + (hash == null ? "compatibility_hash" : "agent_metadata_bytes")
                            + " is missing");
        }
        return new HandshakePayload(hash, metadata, epoch, instanceId);
    }
}
