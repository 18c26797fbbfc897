package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * A reader's wish to be told before the pages go whose payloads it was just given: {@code
 * dormouse_subscribe}, {@code {engine_id, instance_id, host, port, epoch}} in the shape of {@link
 * OwnQuestion}. For peers that tell an instance id.
 *
 * @param reader who subscribes
 * @param epoch of the payloads that it was given
 */
record Subscription(Reader reader, long epoch) {
    /** Longer ids are nobody's. */
    static final int MAX_ID_BYTES = 512;

    static final int MAX_BYTES = 3 * MAX_ID_BYTES + 128;
    private static final int MAX_KEYS = 16;
    private static final String NAME = "dormouse_subscribe";
    private static final String ACCEPTED = "accepted";

    /**
     * An engine that reads.
     *
     * @param engineId its id
     * @param instanceId its process
     * @param address of its side channel
     */
    record Reader(String engineId, String instanceId, SideChannelAddress address) {}

    byte[] encode() {
        return OwnQuestion.encode(
                NAME,
                new WireWriter()
                        .map(5)
                        .string("engine_id")
                        .string(reader.engineId())
                        .string("instance_id")
                        .string(reader.instanceId())
                        .string("host")
                        .string(reader.address().host())
                        .string("port")
                        .integer(reader.address().port())
                        .string("epoch")
                        .integer(epoch)
                        .bytes());
    }

    /**
     * The subscription, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static @Nullable Subscription decode(byte[] bytes) {
        byte[] body = OwnQuestion.body(NAME, bytes);
        if (body == null) {
            return null;
        }
        WireFields in =
                new WireFields("subscription", body, SideChannelListener.MAX_MESSAGE)
                        .strings(MAX_ID_BYTES, "engine_id", "instance_id", "host")
                        .integers(1, 65_535, "port")
                        .integers(0, Long.MAX_VALUE, "epoch")
                        .read(MAX_KEYS, MAX_ID_BYTES);
        String engineId = in.string("engine_id");
        String instanceId = in.string("instance_id");
        String host = in.string("host");
        int port = (int) in.integer("port", 0);
        if (engineId == null || instanceId == null || host == null || port == 0) {
            throw in.fault("it does not say who subscribes");
        }
        if (!SideChannelAddress.isValid(host, port) || SideChannelAddress.isWildcard(host)) {
            throw in.fault("nobody can be reached at " + Excerpt.of(host));
        }
        return new Subscription(
                new Reader(engineId, instanceId, new SideChannelAddress(host, port)),
                in.integer("epoch", 0));
    }

    /** The bytes of an answer: whether the payloads of that epoch are still served. */
    static byte[] answer(boolean accepted) {
        return new WireWriter().map(1).string(ACCEPTED).integer(accepted ? 1 : 0).bytes();
    }

    /**
     * Reads an answer.
     *
     * @throws WireException if the bytes are none
     */
    static boolean isAccepted(byte[] bytes) {
        return new WireFields("subscription answer", bytes, MAX_BYTES)
                        .integers(0, 1, ACCEPTED)
                        .read(MAX_KEYS, MAX_ID_BYTES)
                        .integer(ACCEPTED, 0)
                == 1;
    }
}
