package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;

/**
 * The question of a handshake: {@code [bin "get_meta_msg", pp_rank, tp_rank]}. As vLLM 0.33.0, this
 * takes the constant as a string too, which is what msgpack of most languages makes of text.
 */
final class HandshakeRequest {
    static final int MAX_BYTES = 64;
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
     * @throws WireException if the bytes are not exactly such a request
     */
    static RankId decode(byte[] bytes) {
        WireReader in = new WireReader("handshake request", bytes, MAX_BYTES);
        int elements = in.arraySize("handshake request", 3);
        if (elements != 3) {
            throw in.fault(elements + " elements, not 3");
        }
        if (!Arrays.equals(in.binaryOrString("constant", MAX_BYTES), CONSTANT)) {
            throw in.fault("it does not start with get_meta_msg");
        }
        RankId rank =
                new RankId(
                        (int) in.integer("pp_rank", 0, Integer.MAX_VALUE),
                        (int) in.integer("tp_rank", 0, Integer.MAX_VALUE));
        in.end();
        return rank;
    }
}
