package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The shape of this product's own questions on a side channel: {@code [bin "<name>:" + msgpack, 0,
 * 0]}. It is that of a handshake with an unknown constant, to which vLLM's listener logs a warning
 * and answers as if it were one; at any other shape its thread ends. So a question that reaches an
 * engine of vLLM's, which may have taken the place of another, costs an error here and nothing
 * there.
 */
final class OwnQuestion {
    private OwnQuestion() {}

    static byte[] encode(String name, byte[] body) {
        byte[] prefix = prefix(name);
        byte[] all = Arrays.copyOf(prefix, prefix.length + body.length);
        System.arraycopy(body, 0, all, prefix.length, body.length);
        return new WireWriter().array(3).binary(all).integer(0).integer(0).bytes();
    }

    /**
     * What such a question says, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static byte @Nullable [] body(String name, byte[] question) {
        WireReader in =
                new WireReader("side channel question", question, SideChannelListener.MAX_MESSAGE);
        if (in.arraySize("side channel question", 3) != 3) {
            throw in.fault("not 3 elements");
        }
        byte[] all = in.binaryOrString("constant", SideChannelListener.MAX_MESSAGE);
        byte[] prefix = prefix(name);
        if (all.length < prefix.length
                || Arrays.mismatch(all, 0, prefix.length, prefix, 0, prefix.length) >= 0) {
            return null;
        }
        long _ = in.integer("pp_rank", 0, 0);
        long _ = in.integer("tp_rank", 0, 0);
        in.end();
        return Arrays.copyOfRange(all, prefix.length, all.length);
    }

    private static byte[] prefix(String name) {
        return (name + ":").getBytes(US_ASCII);
    }
}
