package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Seeded;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** Request, reply and wrapper of a handshake. */
final class HandshakeWireTest {
    private static final HexFormat HEX = HexFormat.of();
    private static final String HASH =
            "c9b4c7d0cc763c97eacf257b47b6aff44ece9bcac527ed6a27f01de3745fda6e";

    @Test
    void theRequestIsVllmsByteForByte() {
        byte[] request = HandshakeRequest.encode(new RankId(0, 3));
        assertThat(HEX.formatHex(request)).isEqualTo("93c40c6765745f6d6574615f6d73670003");
        assertThat(HandshakeRequest.decode(request)).isEqualTo(new RankId(0, 3));
    }

    @Test
    void theTimestampIsAFloat64() {
        assertThat(HEX.formatHex(new WireWriter().float64(12345.5).bytes()))
                .isEqualTo("cb40c81cc000000000");
    }

    @Test
    void requestsOfAnotherShapeAreRefused() {
        byte[] constant = "get_meta_msg".getBytes(UTF_8);
        for (WireWriter bad :
                new WireWriter[] {
                    new WireWriter().array(2).binary(constant).integer(0),
                    new WireWriter().array(4).binary(constant).integer(0).integer(0).integer(0),
                    new WireWriter().array(3).integer(0).integer(0).integer(0),
                    new WireWriter().array(3).binary(constant).integer(-1).integer(0),
                    new WireWriter().array(3).binary(constant).integer(0).float64(0),
                    new WireWriter().array(3).binary(constant).integer(0).integer(1L << 40),
                    new WireWriter().map(0)
                }) {
            assertThatExceptionOfType(WireException.class)
                    .isThrownBy(() -> HandshakeRequest.decode(bad.bytes()));
        }
    }

    /** vLLM answers them, and most languages' msgpack makes a string of text. */
    @Test
    void theConstantMayBeTextOrAnother() {
        for (byte[] question :
                new byte[][] {
                    new WireWriter().array(3).string("get_meta_msg").integer(0).integer(7).bytes(),
                    new WireWriter().array(3).string("get_meta_bad").integer(0).integer(7).bytes(),
                    new WireWriter().array(3).binary(new byte[80]).integer(0).integer(7).bytes()
                }) {
            assertThat(HandshakeRequest.decode(question)).isEqualTo(new RankId(0, 7));
            assertThat(HoldQuestion.decode(question)).as("none of our own").isNull();
            assertThat(Subscription.decode(question)).as("none of our own").isNull();
            assertThat(Revocation.decode(question)).as("none of our own").isNull();
        }
    }

    @Test
    void aWrapperOfVllmHasTwoKeysAndOursTwoMore() {
        byte[] vllms = new HandshakePayload(HASH, new byte[] {7}, 0, null).encode();
        assertThat(HEX.formatHex(vllms)).startsWith("82b2636f6d7061746962696c6974795f68617368d940");
        assertThat(HandshakePayload.decode(vllms).instanceId()).isNull();
        assertThat(HandshakePayload.decode(vllms).epoch()).isZero();

        byte[] ours = new HandshakePayload(HASH, new byte[] {7}, 5, "i").encode();
        assertThat(ours[0]).isEqualTo((byte) 0x84);
        assertThat(Arrays.copyOfRange(ours, 1, vllms.length))
                .as("vLLM's keys come first and are the same")
                .isEqualTo(Arrays.copyOfRange(vllms, 1, vllms.length));
        HandshakePayload read = HandshakePayload.decode(ours);
        assertThat(read.epoch()).isEqualTo(5);
        assertThat(read.instanceId()).isEqualTo("i");
        assertThat(read.compatibilityHash()).isEqualTo(HASH);
        assertThat(read.agentMetadata()).containsExactly(7);
    }

    @Test
    void aRefusalIsNoPayloadAndSaysWhy() {
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HandshakePayload.decode(HandshakePayload.refusal("it is asleep")))
                .withMessageContaining("refused by the peer: it is asleep");
    }

    @Test
    void wrappersOfAnotherShapeAreRefused() {
        byte[] wrongType =
                new WireWriter()
                        .map(2)
                        .string("compatibility_hash")
                        .binary(new byte[64])
                        .string("agent_metadata_bytes")
                        .binary(new byte[1])
                        .bytes();
        byte[] stringBlob =
                new WireWriter()
                        .map(2)
                        .string("compatibility_hash")
                        .string(HASH)
                        .string("agent_metadata_bytes")
                        .string("x")
                        .bytes();
        byte[] missing = new WireWriter().map(1).string("compatibility_hash").string(HASH).bytes();
        byte[] negative = new WireWriter().map(1).string("registration_epoch").integer(-1).bytes();
        for (byte[] bad :
                new byte[][] {wrongType, stringBlob, missing, negative, {}, {(byte) 0xc1}}) {
            assertThatExceptionOfType(WireException.class)
                    .isThrownBy(() -> HandshakePayload.decode(bad));
        }
    }

    @Test
    void damagedWrappersAndRequestsAreReadOrRefusedAndNothingElse() {
        byte[] wrapper = new HandshakePayload(HASH, new byte[40], 5, "instance").encode();
        byte[] request = HandshakeRequest.encode(new RankId(1, 2));
        Seeded.forAll(
                3_000,
                random -> {
                    byte[] good = random.nextBoolean() ? wrapper : request;
                    byte[] damaged = Arrays.copyOf(good, random.nextInt(good.length + 4));
                    for (int i = 0; i < 3 && damaged.length > 0; i++) {
                        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
                    }
                    try {
                        HandshakePayload.decode(damaged);
                    } catch (WireException expected) {
                        assertThat(expected).hasMessageNotContaining("\n");
                    }
                    try {
                        HandshakeRequest.decode(damaged);
                    } catch (WireException expected) {
                        assertThat(expected).hasMessageStartingWith("decode handshake request");
                    }
                });
    }
}
