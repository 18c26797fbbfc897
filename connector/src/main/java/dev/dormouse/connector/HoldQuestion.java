package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * A reader's claim to a request's blocks, and its question for how long they are held: {@code
 * dormouse_hold}, {@code [request id, reader]} in the shape of {@link OwnQuestion}. For peers that
 * tell an instance id.
 *
 * @param requestId the holder's own id
 * @param reader who is going to read: one request of one process, on all of its ranks
 */
record HoldQuestion(String requestId, String reader) {
    /** Longer ones are nobody's. */
    static final int MAX_ID_BYTES = 512;

    private static final int MAX_READER_BYTES = 2 * MAX_ID_BYTES;
    private static final String NAME = "dormouse_hold";

    /** The claim of a request of the process {@code instanceId}. */
    static HoldQuestion of(PeerOrder order, String instanceId) {
        return new HoldQuestion(order.remote().requestId(), instanceId + " " + order.requestId());
    }

    byte[] encode() {
        return OwnQuestion.encode(
                NAME, new WireWriter().array(2).string(requestId).string(reader).bytes());
    }

    /**
     * The claim, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static @Nullable HoldQuestion decode(byte[] bytes) {
        byte[] body = OwnQuestion.body(NAME, bytes);
        if (body == null) {
            return null;
        }
        WireReader in = new WireReader("claim", body, SideChannelListener.MAX_MESSAGE);
        if (in.arraySize("claim", 2) != 2) {
            throw in.fault("not 2 elements");
        }
        HoldQuestion question =
                new HoldQuestion(
                        in.string("request id", MAX_ID_BYTES),
                        in.string("reader", MAX_READER_BYTES));
        in.end();
        return question;
    }
}
