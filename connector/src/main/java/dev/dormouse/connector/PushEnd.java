package dev.dormouse.connector;

/**
 * A holder's rank has done with a push registration otherwise than by a complete write. Between
 * engines of this product only.
 *
 * @param requestId the decode engine's request
 * @param clear true if nothing can be written for it any more; false if a write is under way, after
 *     which another message follows
 */
record PushEnd(String requestId, boolean clear) implements Notification {
    static final String PREFIX = "DORMOUSE_PUSH_END:";

    private static final int MAX_BYTES = 2_048;
    private static final int MAX_KEYS = 16;

    byte[] encode() {
        WireWriter out = new WireWriter().map(2);
        out.string("request_id").string(requestId);
        out.string("clear").integer(clear ? 1 : 0);
        return Notification.prefixed(PREFIX, out);
    }

    /**
     * Reads what follows the prefix.
     *
     * @throws WireException if that is something else
     */
    static PushEnd decode(byte[] bytes) {
        WireFields in =
                new WireFields("end of a push", bytes, MAX_BYTES)
                        .strings(MAX_BYTES, "request_id")
                        .integers(0, 1, "clear")
                        .read(MAX_KEYS, MAX_BYTES);
        String requestId = in.string("request_id");
        if (requestId == null || !in.has("clear")) {
            throw in.fault("a key is missing");
        }
        return new PushEnd(requestId, in.integer("clear", 0) == 1);
    }
}
