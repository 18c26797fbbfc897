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
        WireReader in = new WireReader("end of a push", bytes, MAX_BYTES);
        String requestId = null;
        long clear = -1;
        int entries = in.mapSize("end of a push", MAX_KEYS);
        for (int i = 0; i < entries; i++) {
            String key = in.string("a key", MAX_BYTES);
            switch (key) {
                case "request_id" -> requestId = in.string(key, MAX_BYTES);
                case "clear" -> clear = in.integer(key, 0, 1);
                default -> in.skip("an unknown key");
            }
        }
        in.end();
        if (requestId == null || clear < 0) {
            throw in.fault("a key is missing");
        }
        return new PushEnd(requestId, clear == 1);
    }
}
