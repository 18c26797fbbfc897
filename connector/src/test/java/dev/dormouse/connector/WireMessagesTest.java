package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNoException;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Every message of the side channel: exact at its end, open to keys of later versions. */
final class WireMessagesTest {
    private static final byte[] PAYLOAD = new HandshakePayload("h", new byte[8], 3, "i").encode();
    private static final byte[] REVOCATION = new Revocation("P", "pi", 3, 7).encode();
    private static final byte[] REVOKED = new DemandReply("D", "di", true).encode();
    private static final byte[] SUBSCRIPTION =
            new Subscription(
                            new Subscription.Reader(
                                    "D", "di", new SideChannelAddress("127.0.0.1", 5600)),
                            3)
                    .encode();
    private static final PushCancel TAKEN_BACK =
            new PushCancel(new RemoteSource("de", "i", "d1", "h", 5600, 2, 1, 7));
    private static final byte[] CANCEL = TAKEN_BACK.encode();
    private static final byte[] SUBSCRIBED = Subscription.answer(true);
    private static final HoldQuestion CLAIM = new HoldQuestion("r", "di");
    private static final byte[] HOLD = HoldAnswer.encode("r", 3, false, 4, "pi");

    @Test
    void bytesBehindAMessageRefuseIt() {
        assertExact(PAYLOAD, HandshakePayload::decode);
        assertExact(REVOCATION, Revocation::decode);
        assertExact(REVOKED, DemandReply::decode);
        assertExact(CANCEL, PushCancel::decode);
        assertExact(SUBSCRIPTION, Subscription::decode);
        assertExact(SUBSCRIBED, Subscription::isAccepted);
        assertExact(HOLD, bytes -> HoldAnswer.decode(bytes, CLAIM, 0));
        assertExact(CLAIM.encode(), HoldQuestion::decode);
        assertExact(HandshakeRequest.encode(new RankId(0, 1)), HandshakeRequest::decode);
        assertExact(
                new WireWriter().float64(1).bytes(),
                bytes -> new HandshakeAnswers.Collector().addPayload(PAYLOAD, bytes, 0, 1));
    }

    @Test
    void whatIsWrongWithBytesIsSaidInWords() {
        assertProblem("decode hash question: hash is cut short", new byte[0]);
        assertProblem("hash is cut short", new byte[] {(byte) 0xcf, 1});
        assertProblem("hash is 2^63 or more", new byte[] {(byte) 0xcf, -1, 0, 0, 0, 0, 0, 0, 0});
        assertProblem("hash is not MessagePack", new byte[] {(byte) 0xc1});
    }

    private static void assertProblem(String problem, byte[] bytes) {
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> new WireReader("hash question", bytes, 64).integer("hash", 0, 9))
                .withMessageContaining(problem);
    }

    private static void assertExact(byte[] message, Consumer<byte[]> decoder) {
        assertThatNoException().isThrownBy(() -> decoder.accept(message));
        byte[] longer = Arrays.copyOf(message, message.length + 1);
        assertThatExceptionOfType(WireException.class).isThrownBy(() -> decoder.accept(longer));
    }

    @Test
    void keysOfLaterVersionsArePassedOver() {
        assertThat(HandshakePayload.decode(withUnknownKey(PAYLOAD, 0)).instanceId()).isEqualTo("i");
        assertThat(Revocation.decode(questionWithUnknownKey("dormouse_revoke", REVOCATION)))
                .isEqualTo(new Revocation("P", "pi", 3, 7));
        assertThat(PushCancel.decode(CANCEL)).isEqualTo(TAKEN_BACK);
        assertThat(PushCancel.decode(questionWithUnknownKey("dormouse_push_cancel", CANCEL)))
                .isEqualTo(TAKEN_BACK);
        assertThat(DemandReply.decode(withUnknownKey(REVOKED, 0)))
                .isEqualTo(new DemandReply("D", "di", true));
        assertThat(
                        Objects.requireNonNull(
                                Subscription.decode(
                                        questionWithUnknownKey(
                                                "dormouse_subscribe", SUBSCRIPTION))))
                .isEqualTo(Subscription.decode(SUBSCRIPTION));
        assertThat(Subscription.isAccepted(withUnknownKey(SUBSCRIBED, 0))).isTrue();
        assertThat(HoldAnswer.decode(withUnknownKey(HOLD, 0), CLAIM, 5))
                .isEqualTo(new HoldAnswer(true, false, 3_000_000_005L, 4, "pi"));
    }

    @Test
    void aCancellationThatLacksAKeyIsNone() {
        for (WireWriter body :
                List.of(
                        new WireWriter().array(1).string("request_id"),
                        new WireWriter().map(1).string("request_id").integer(1),
                        new WireWriter().map(1).string("request_id").string("d1"),
                        new WireWriter().map(0))) {
            byte[] question = OwnQuestion.encode("dormouse_push_cancel", body.bytes());
            assertThatExceptionOfType(WireException.class)
                    .isThrownBy(() -> PushCancel.decode(question));
        }
    }

    /** A word about the first must not count for the second. */
    @Test
    void registrationsOfOneRequestAreTakenBackOneByOne() {
        PushCancel first = new PushCancel(waitingUntil(3));
        assertThat(PushCancel.decode(first.encode()))
                .extracting(PushCancel::id)
                .isEqualTo(first.id());
        assertThat(new PushCancel(waitingUntil(4)).id()).isNotEqualTo(first.id());
    }

    private static RemoteSource waitingUntil(double seconds) {
        return new RemoteSource("de", "i", "d1", "h", 5600, 2, 1, 7, new RemoteLease(seconds, 480));
    }

    @Test
    void aProcessHasEndedWhenItSaysSoOrAnotherOfItsEngineAnswers() {
        assertThat(new DemandReply("P", "pi", true).ends("P", "pi")).isTrue();
        assertThat(new DemandReply("P", "pi", false).ends("P", "pi")).isFalse();
        assertThat(new DemandReply("P", "next", false).ends("P", "pi")).isTrue();
        assertThat(new DemandReply("Q", "qi", true).ends("P", "pi")).isFalse();
    }

    @Test
    void aHoldOfNoTimeIsAHoldAndALessThanNoTimeIsNone() {
        assertThat(HoldAnswer.decode(HoldAnswer.encode("r", 0, false, 4, "pi"), CLAIM, 5).held())
                .isTrue();
        assertThat(HoldAnswer.decode(HoldAnswer.encode("r", -1, false, 4, "pi"), CLAIM, 5).held())
                .isFalse();
        RegistrationIdentity loaded = new RegistrationIdentity("pi", 4, 4);
        HoldAnswer elsewhere =
                HoldAnswer.decode(HoldAnswer.encode("r", 3, false, 5, "pi"), CLAIM, 5);
        assertThat(HoldAnswer.isConfirmed(elsewhere, loaded)).isFalse();
        assertThat(elsewhere.promises(loaded)).isFalse();
        HoldAnswer coming = HoldAnswer.decode(HoldAnswer.encode("r", -1, true, 4, "pi"), CLAIM, 5);
        assertThat(coming.promises(loaded)).isTrue();
        assertThat(coming.confirms(loaded)).isFalse();
        assertThat(HoldAnswer.isConfirmed(null, loaded)).isFalse();
        assertThat(HoldAnswer.isConfirmed(HoldAnswer.decode(HOLD, CLAIM, 5), loaded)).isTrue();
    }

    @Test
    void anAnswerAboutAnotherRequestIsRefused() {
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HoldAnswer.decode(HOLD, new HoldQuestion("s", "di"), 5))
                .withMessageContaining("another request");
    }

    @Test
    void anOlderHoldersAnswerDoesNotSayWhichRequestItIsAbout() {
        byte[] older =
                new WireWriter()
                        .map(2)
                        .string("held_seconds")
                        .float64(3)
                        .string("instance_id")
                        .string("pi")
                        .bytes();
        assertThat(HoldAnswer.decode(older, CLAIM, 5).held()).isTrue();
    }

    @Test
    void aPayloadSaysWhichKeyItLacks() {
        byte[] noHash =
                new WireWriter().map(1).string("agent_metadata_bytes").binary(new byte[1]).bytes();
        byte[] noMetadata =
                new WireWriter().map(1).string("compatibility_hash").string("h").bytes();
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HandshakePayload.decode(noHash))
                .withMessageContaining("compatibility_hash is missing");
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> HandshakePayload.decode(noMetadata))
                .withMessageContaining("agent_metadata_bytes is missing");
    }

    @Test
    void nobodySubscribesToPayloadsOfSeveralRegistrations() {
        HandshakeAnswers.Collector answers = new HandshakeAnswers.Collector();
        byte[] now = new WireWriter().float64(1).bytes();
        assertThat(answers.isOfOurKind()).isFalse();
        answers.addPayload(PAYLOAD, now, 0, 1);
        answers.addPayload(PAYLOAD, now, 0, 1);
        assertThat(answers.epochToSubscribe()).isEqualTo(3);
        assertThat(answers.isOfOurKind()).isTrue();
        answers.addPayload(new HandshakePayload("h", new byte[8], 4, "i").encode(), now, 0, 1);
        assertThat(answers.epochToSubscribe()).isZero();
    }

    private static byte[] questionWithUnknownKey(String name, byte[] question) {
        byte[] body = Objects.requireNonNull(OwnQuestion.body(name, question));
        return OwnQuestion.encode(name, withUnknownKey(body, 0));
    }

    /** The message with one more entry in the small map that starts at {@code at}. */
    private static byte[] withUnknownKey(byte[] message, int at) {
        byte[] entry = new WireWriter().string("later").strings(List.of("x", "y")).bytes();
        byte[] bytes = Arrays.copyOf(message, message.length + entry.length);
        bytes[at]++;
        System.arraycopy(entry, 0, bytes, message.length, entry.length);
        return bytes;
    }
}
