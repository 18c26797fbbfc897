package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A decode engine waits for the KV of a request and tells the engine that holds it where to write
 * it: {@code PUSH_REG:} and a msgpack map with vLLM's keys, and behind them this product's, which
 * vLLM ignores. The latter are written if the decode engine tells its instance.
 *
 * @param decoder the decode engine, and its request; the lease is for how long it waits
 * @param blocks its blocks, which take the last ones of the prompt
 * @param holder the engine that holds the KV, as {@code kv_transfer_params} name it; its request is
 *     this product's key, and empty if the message does not tell; its process and epoch are those
 *     that the decode engine has loaded, null and 0 if unknown
 */
record PushRegistration(RemoteSource decoder, List<Integer> blocks, RemoteSource holder)
        implements Notification {
    static final String PREFIX = "PUSH_REG:";

    private static final String REQUEST_ID = "request_id";
    private static final String ENGINE_ID = "decode_engine_id";
    private static final String HOST = "decode_host";
    private static final String PORT = "decode_port";
    private static final String TP_SIZE = "decode_tp_size";
    private static final String BLOCKS = "local_block_ids";
    private static final String HOLDER_ENGINE_ID = "remote_engine_id";
    private static final String HOLDER_HOST = "remote_host";
    private static final String HOLDER_PORT = "remote_port";
    private static final String HOLDER_TP_SIZE = "remote_tp_size";
    private static final String HOLDER_PP_SIZE = "remote_pp_size";
    private static final String EPOCH = "decode_registration_epoch";
    private static final String INSTANCE_ID = "decode_instance_id";
    private static final String HOLDER_REQUEST_ID = "remote_request_id";
    private static final String HOLDER_INSTANCE_ID = "remote_instance_id";
    private static final String HOLDER_EPOCH = "remote_registration_epoch";
    private static final String LEASE_DEADLINE = "decode_lease_deadline";
    private static final String LEASE_SECONDS = "decode_lease_seconds";

    private static final int MAX_KEYS = 64;
    private static final int MAX_STRING_BYTES = 1_024;
    private static final int MAX_BLOCKS = 1 << 18;
    private static final int MAX_RANKS = 1_024;
    private static final double MAX_CLOCK_SECONDS = 1e9;
    private static final double MAX_LEASE_SECONDS = 86_400;

    PushRegistration {
        blocks = List.copyOf(blocks);
    }

    byte[] encode() {
        String instanceId = decoder.instanceId();
        WireWriter out = new WireWriter().map(instanceId == null ? 11 : 18);
        out.string(REQUEST_ID).string(decoder.requestId());
        out.string(ENGINE_ID).string(decoder.engineId());
        out.string(HOST).string(decoder.host());
        out.string(PORT).integer(decoder.port());
        out.string(TP_SIZE).integer(decoder.tpSize());
        out.string(BLOCKS).array(1).integers(blocks.stream().map(Integer::longValue).toList());
        out.string(HOLDER_ENGINE_ID).string(holder.engineId());
        out.string(HOLDER_HOST).string(holder.host());
        out.string(HOLDER_PORT).integer(holder.port());
        out.string(HOLDER_TP_SIZE).integer(holder.tpSize());
        out.string(HOLDER_PP_SIZE).integer(holder.ppSize());
        if (instanceId != null) {
            out.string(EPOCH).integer(decoder.epoch());
            out.string(INSTANCE_ID).string(instanceId);
            out.string(HOLDER_REQUEST_ID).string(holder.requestId());
            out.string(HOLDER_INSTANCE_ID).string(Objects.toString(holder.instanceId(), ""));
            out.string(HOLDER_EPOCH).integer(holder.epoch());
            out.string(LEASE_DEADLINE).float64(decoder.lease().deadlineSeconds());
            out.string(LEASE_SECONDS).float64(decoder.lease().lengthSeconds());
        }
        return Notification.prefixed(PREFIX, out);
    }

    /**
     * Reads what follows the prefix.
     *
     * @throws WireException if it is no registration of one group of blocks
     */
    static PushRegistration decode(byte[] bytes) {
        WireFields in =
                new WireFields("push registration", bytes, Notification.MAX_BYTES)
                        .strings(
                                MAX_STRING_BYTES,
                                REQUEST_ID,
                                ENGINE_ID,
                                HOST,
                                HOLDER_ENGINE_ID,
                                HOLDER_HOST,
                                INSTANCE_ID,
                                HOLDER_REQUEST_ID,
                                HOLDER_INSTANCE_ID)
                        .integers(
                                0,
                                Long.MAX_VALUE,
                                PORT,
                                TP_SIZE,
                                HOLDER_PORT,
                                HOLDER_TP_SIZE,
                                HOLDER_PP_SIZE,
                                EPOCH,
                                HOLDER_EPOCH)
                        .floats(LEASE_DEADLINE, LEASE_SECONDS)
                        .other(BLOCKS, PushRegistration::blocks)
                        .read(MAX_KEYS, MAX_STRING_BYTES);
        Blocks blocks = in.other(BLOCKS, Blocks.class);
        if (blocks == null) {
            throw in.fault(BLOCKS + " is missing");
        }
        RemoteLease lease = lease(in);
        RemoteSource decoder =
                new RemoteSource(
                        required(in, ENGINE_ID),
                        in.string(INSTANCE_ID),
                        required(in, REQUEST_ID),
                        required(in, HOST),
                        between(in, PORT, 65_535),
                        between(in, TP_SIZE, MAX_RANKS),
                        1,
                        in.integer(EPOCH, 0),
                        lease);
        RemoteSource holder =
                new RemoteSource(
                        required(in, HOLDER_ENGINE_ID),
                        emptyToNull(in.string(HOLDER_INSTANCE_ID)),
                        Objects.requireNonNullElse(in.string(HOLDER_REQUEST_ID), ""),
                        required(in, HOLDER_HOST),
                        between(in, HOLDER_PORT, 65_535),
                        between(in, HOLDER_TP_SIZE, MAX_RANKS),
                        between(in, HOLDER_PP_SIZE, MAX_RANKS),
                        in.integer(HOLDER_EPOCH, 0));
        if (!SideChannelAddress.isValid(decoder.host(), decoder.port())) {
            throw in.fault(HOST + " is no host name or address");
        }
        return new PushRegistration(decoder, blocks.ids(), holder);
    }

    private static @Nullable String emptyToNull(@Nullable String value) {
        return value == null || value.isEmpty() ? null : value;
    }

    /** True if another rank's message wants the same to be done; only its time may differ. */
    boolean asksTheSame(PushRegistration other) {
        return decoder.key().equals(other.decoder.key())
                && decoder.epoch() == other.decoder.epoch()
                && decoder.tpSize() == other.decoder.tpSize()
                && holder.requestId().equals(other.holder.requestId())
                && blocks.equals(other.blocks);
    }

    /** About how much memory it takes. */
    long weightBytes() {
        long bytes = 512 + 20L * blocks.size();
        for (RemoteSource end : List.of(decoder, holder)) {
            bytes += end.engineId().length() + end.host().length() + end.requestId().length();
        }
        return bytes;
    }

    /** One group of block ids. */
    private record Blocks(List<Integer> ids) {}

    private static Blocks blocks(WireReader in) {
        if (in.arraySize(BLOCKS, MAX_KEYS) != 1) {
            throw in.fault(BLOCKS + " is not one group");
        }
        List<Integer> blocks = new ArrayList<>();
        in.integers(BLOCKS, MAX_BLOCKS, 0, Integer.MAX_VALUE)
                .forEach(block -> blocks.add(block.intValue()));
        if (blocks.isEmpty()) {
            throw in.fault(BLOCKS + " is empty");
        }
        return new Blocks(blocks);
    }

    private static RemoteLease lease(WireFields in) {
        double deadline = in.float64(LEASE_DEADLINE, Double.NaN);
        double length = in.float64(LEASE_SECONDS, 0);
        if (Math.abs(deadline) > MAX_CLOCK_SECONDS
                || !(length >= 0 && length <= MAX_LEASE_SECONDS)) {
            throw in.fault("a lease of " + length + " s until " + deadline);
        }
        return new RemoteLease(deadline, length);
    }

    private static String required(WireFields in, String key) {
        @Nullable String value = in.string(key);
        if (value == null || value.isEmpty()) {
            throw in.fault(key + " is missing");
        }
        return value;
    }

    private static int between(WireFields in, String key, int max) {
        long value = in.integer(key, 0);
        if (value < 1 || value > max) {
            throw in.fault(key + " is " + value + ", not between 1 and " + max);
        }
        return (int) value;
    }
}
