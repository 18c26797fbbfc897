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
    private static final String HASH = "compatibility_hash";
    private static final String METADATA = "agent_metadata_bytes";
    private static final String EPOCH = "registration_epoch";
    private static final String INSTANCE = "instance_id";
    private static final String ERROR = "error";
    private static final int MAX_KEYS = 64;
    private static final int MAX_STRING_BYTES = 1_024;

    byte[] encode() {
        WireWriter out = new WireWriter().map(instanceId == null ? 2 : 4);
        out.string(HASH).string(compatibilityHash);
        out.string(METADATA).binary(agentMetadata);
        if (instanceId != null) {
            out.string(EPOCH).integer(epoch);
            out.string(INSTANCE).string(instanceId);
        }
        return out.bytes();
    }

    /**
     * What is sent instead of a payload that cannot be had: a map that no reader takes for one, so
     * that a reader fails at once instead of waiting for its timeout.
     */
    static byte[] refusal(String reason) {
        return new WireWriter().map(1).string(ERROR).string(reason).bytes();
    }

    /**
     * @throws WireException if the bytes are not a payload, or are a refusal
     */
    static HandshakePayload decode(byte[] bytes) {
        WireFields in =
                new WireFields("handshake payload", bytes, MAX_BYTES)
                        .strings(MAX_STRING_BYTES, HASH, INSTANCE, ERROR)
                        .integers(0, Long.MAX_VALUE, EPOCH)
                        .other(METADATA, reader -> reader.binary(METADATA, MAX_BYTES))
                        .read(MAX_KEYS, MAX_STRING_BYTES);
        String refusal = in.string(ERROR);
        if (refusal != null) {
            throw new WireException("handshake refused by the peer: " + refusal);
        }
        String hash = in.string(HASH);
        byte[] metadata = in.other(METADATA, byte[].class);
        if (hash == null || metadata == null) {
            throw in.fault("key " + (hash == null ? HASH : METADATA) + " is missing");
        }
        return new HandshakePayload(hash, metadata, in.integer(EPOCH, 0), in.string(INSTANCE));
    }
}
