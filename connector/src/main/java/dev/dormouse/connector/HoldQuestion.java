package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A reader's claim to a request's blocks, and its question for how long they are held: {@code [bin
 * "dormouse_hold", request id, reader's instance id]}. For peers that tell an instance id only.
 *
 * @param requestId the holder's own id
 * @param reader the process that is going to read
 */
record HoldQuestion(String requestId, String reader) {
    /** Longer ones are nobody's. */
    static final int MAX_ID_BYTES = 512;

    static final int MAX_BYTES = 2 * MAX_ID_BYTES + 32;
    private static final byte[] CONSTANT = "dormouse_hold".getBytes(UTF_8);

    byte[] encode() {
        return new WireWriter().array(3).binary(CONSTANT).string(requestId).string(reader).bytes();
    }

    /**
     * The claim, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static @Nullable HoldQuestion decode(byte[] bytes) {
        WireReader in =
                new WireReader("side channel question", bytes, SideChannelListener.MAX_MESSAGE);
        if (in.arraySize("side channel question", 3) != 3
                || !Arrays.equals(in.binary("constant", MAX_BYTES), CONSTANT)) {
            return null;
        }
        HoldQuestion question =
                new HoldQuestion(
                        in.string("request id", MAX_ID_BYTES), in.string("reader", MAX_ID_BYTES));
        in.end();
        return question;
    }
}
