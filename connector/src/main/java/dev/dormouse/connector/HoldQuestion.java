package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A reader's question whether a request's blocks are still held: {@code [bin "dormouse_hold",
 * request id]}. For peers that tell an instance id only.
 */
final class HoldQuestion {
    /** Longer ones are nobody's. */
    static final int MAX_ID_BYTES = 512;

    static final int MAX_BYTES = MAX_ID_BYTES + 32;
    private static final byte[] CONSTANT = "dormouse_hold".getBytes(UTF_8);

    private HoldQuestion() {}

    static byte[] encode(String requestId) {
        return new WireWriter().array(2).binary(CONSTANT).string(requestId).bytes();
    }

    /**
     * The request that is asked about, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static @Nullable String decode(byte[] bytes) {
        WireReader in =
                new WireReader("side channel question", bytes, SideChannelListener.MAX_MESSAGE);
        if (in.arraySize("side channel question", 3) != 2
                || !Arrays.equals(in.binary("constant", MAX_BYTES), CONSTANT)) {
            return null;
        }
        String id = in.string("request id", MAX_ID_BYTES);
        in.end();
        return id;
    }
}
