package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;

/**
 * The question of a handshake: {@code [bin "get_meta_msg", pp_rank, tp_rank]}. As vLLM 0.33.0, this
 * takes any constant, and a string, which is what msgpack of most languages makes of text.
 */
final class HandshakeRequest {
    static final int MAX_BYTES = SideChannelListener.MAX_MESSAGE;
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final byte[] CONSTANT = "get_meta_msg".getBytes(UTF_8);

    private HandshakeRequest() {}

    static byte[] encode(RankId rank) {
        return new WireWriter()
                .array(3)
                .binary(CONSTANT)
                .integer(rank.ppRank())
                .integer(rank.tpRank())
                .bytes();
    }

    /**
     * @throws WireException if the bytes have not the shape of such a request
     */
    static RankId decode(byte[] bytes) {
        WireReader in = new WireReader("handshake request", bytes, MAX_BYTES);
        int elements = in.arraySize("handshake request", 3);
        if (elements != 3) {
            throw in.fault(elements + " elements, not 3");
        }
        boolean usual = Arrays.equals(in.binaryOrString("constant", MAX_BYTES), CONSTANT);
        RankId rank =
                new RankId(
                        (int) in.integer("pp_rank", 0, Integer.MAX_VALUE),
                        (int) in.integer("tp_rank", 0, Integer.MAX_VALUE));
        in.end();
        if (!usual) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "side channel: a handshake request does not start with get_meta_msg");
        }
        return rank;
    }
}
