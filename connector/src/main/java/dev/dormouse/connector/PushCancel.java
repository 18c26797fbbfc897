package dev.dormouse.connector;

/**
 * A decode engine does not wait for a request any more, and wants to know when nothing can be
 * written for it: it is answered by {@link PushEnd}, and repeated until then. Between engines of
 * this product only; vLLM would die of it.
 *
 * @param decoder the decode engine, and its request
 */
record PushCancel(RemoteSource decoder) implements Notification {
    static final String PREFIX = "DORMOUSE_PUSH_CANCEL:";

    private static final int MAX_KEYS = 16;
    private static final int MAX_STRING_BYTES = 1_024;
    private static final int MAX_RANKS = 1_024;

    byte[] encode() {
        WireWriter out = new WireWriter().map(7);
        out.string("request_id").string(decoder.requestId());
        out.string("engine_id").string(decoder.engineId());
        out.string("instance_id").string(String.valueOf(decoder.instanceId()));
        out.string("host").string(decoder.host());
        out.string("port").integer(decoder.port());
        out.string("tp_size").integer(decoder.tpSize());
        out.string("epoch").integer(decoder.epoch());
        return Notification.prefixed(PREFIX, out);
    }

    /**
     * Reads what follows the prefix.
     *
     * @throws WireException if that is something else
     */
    static PushCancel decode(byte[] bytes) {
        WireFields in =
                new WireFields("push cancellation", bytes, 8 * MAX_STRING_BYTES)
                        .strings(MAX_STRING_BYTES, "request_id", "engine_id", "instance_id", "host")
                        .integers(1, 65_535, "port")
                        .integers(1, MAX_RANKS, "tp_size")
                        .integers(0, Long.MAX_VALUE, "epoch")
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
                        in.integer("epoch", 0)));
    }
}
