package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * A decode engine does not wait for a request any more, and wants to know when nothing can be
 * written for it: {@code dormouse_push_cancel} in the shape of {@link OwnQuestion}. It goes over
 * the side channel, which answers also if the holder sleeps or cannot reach the decode engine, and
 * may come before the registration that it takes back.
 *
 * @param decoder the decode engine, and its request; the end of its lease tells one registration of
 *     a request from another
 */
public record PushCancel(RemoteSource decoder) implements Demand {
    private static final String NAME = "dormouse_push_cancel";
    private static final String LEASE = "lease_deadline";
    private static final int MAX_KEYS = 16;
    private static final int MAX_STRING_BYTES = 1_024;
    private static final int MAX_RANKS = 1_024;

    @Override
    public String id() {
        return String.join(
                "\n",
                decoder.engineId(),
                String.valueOf(decoder.instanceId()),
                decoder.host(),
                Integer.toString(decoder.port()),
                decoder.requestId(),
                Double.toString(decoder.lease().deadlineSeconds()));
    }

    byte[] encode() {
        WireWriter out = new WireWriter().map(8);
        out.string("request_id").string(decoder.requestId());
        out.string("engine_id").string(decoder.engineId());
        out.string("instance_id").string(String.valueOf(decoder.instanceId()));
        out.string("host").string(decoder.host());
        out.string("port").integer(decoder.port());
        out.string("tp_size").integer(decoder.tpSize());
        out.string("epoch").integer(decoder.epoch());
        out.string(LEASE).float64(decoder.lease().deadlineSeconds());
        return OwnQuestion.encode(NAME, out.bytes());
    }

    /**
     * The cancellation, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static @Nullable PushCancel decode(byte[] bytes) {
        byte[] body = OwnQuestion.body(NAME, bytes);
        if (body == null) {
            return null;
        }
        WireFields in =
                new WireFields("push cancellation", body, SideChannelListener.MAX_MESSAGE)
                        .strings(MAX_STRING_BYTES, "request_id", "engine_id", "instance_id", "host")
                        .integers(1, 65_535, "port")
                        .integers(1, MAX_RANKS, "tp_size")
                        .integers(0, Long.MAX_VALUE, "epoch")
                        .floats(LEASE)
                        .read(MAX_KEYS, MAX_STRING_BYTES);
        String requestId = in.string("request_id");
        String engineId = in.string("engine_id");
        String instanceId = in.string("instance_id");
        String host = in.string("host");
        if (requestId == null
                || engineId == null
                || instanceId == null
                || host == null
                || !in.has("port", "tp_size", "epoch")) {
            throw in.fault("a key is missing");
        }
        int port = (int) in.integer("port", 0);
        if (!SideChannelAddress.isValid(host, port)) {
            throw in.fault("host is no host name or address");
        }
        return new PushCancel(
                new RemoteSource(
                        engineId,
                        instanceId,
                        requestId,
                        host,
                        port,
                        (int) in.integer("tp_size", 1),
                        1,
                        in.integer("epoch", 0),
                        new RemoteLease(in.float64(LEASE, Double.NaN), 0)));
    }
}
