package dev.dormouse.connector;

import java.util.HashMap;
import java.util.Map;
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
        WireReader in = new WireReader("push cancellation", body, SideChannelListener.MAX_MESSAGE);
        Map<String, String> strings = new HashMap<>();
        Map<String, Long> integers = new HashMap<>();
        double deadline = Double.NaN;
        int entries = in.mapSize("push cancellation", MAX_KEYS);
        for (int i = 0; i < entries; i++) {
            String key = in.string("a key", MAX_STRING_BYTES);
            switch (key) {
                case "request_id", "engine_id", "instance_id", "host" ->
                        strings.put(key, in.string(key, MAX_STRING_BYTES));
                case "port" -> integers.put(key, in.integer(key, 1, 65_535));
                case "tp_size" -> integers.put(key, in.integer(key, 1, MAX_RANKS));
                case "epoch" -> integers.put(key, in.integer(key, 0, Long.MAX_VALUE));
                case LEASE -> deadline = in.float64(key);
                default -> in.skip("an unknown key");
            }
        }
        in.end();
        if (strings.size() != 4 || integers.size() != 3) {
            throw in.fault("a key is missing");
        }
        String host = strings.getOrDefault("host", "");
        int port = integers.getOrDefault("port", 0L).intValue();
        if (!SideChannelAddress.isValid(host, port)) {
            throw in.fault("host is no host name or address");
        }
        return new PushCancel(
                new RemoteSource(
                        strings.getOrDefault("engine_id", ""),
                        strings.get("instance_id"),
                        strings.getOrDefault("request_id", ""),
                        host,
                        port,
                        integers.getOrDefault("tp_size", 1L).intValue(),
                        1,
                        integers.getOrDefault("epoch", 0L),
                        new RemoteLease(deadline, 0)));
    }
}
