package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Seeded;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Messages between workers, which anybody could send. */
final class NotificationTest {
    @Test
    void aCompletionIsSplitAtItsLastColon() {
        assertThat(decode("cmpl-a:b-1:2")).isEqualTo(new Notification.Completion("cmpl-a:b-1", 2));
        assertThat(decode("DORMOUSE_CLAIMED:a:b:2"))
                .isEqualTo(new Notification.Completion("a:b", 2, true));
        assertThat(decode("DORMOUSE_CLAIMED:2")).isInstanceOf(Notification.Malformed.class);
        assertThat(new String(new Notification.Completion("r", 3, true).encode(), UTF_8))
                .isEqualTo("DORMOUSE_CLAIMED:r:3");
        assertThat(new String(new Notification.Completion("r", 1).encode(), UTF_8))
                .isEqualTo("r:1");
    }

    @Test
    void aHeartbeatListsRequests() {
        assertThat(decode("HB:a,b:1,,c"))
                .isEqualTo(new Notification.Renewal(List.of("a", "b:1", "c")));
        assertThat(decode("HB:")).isEqualTo(new Notification.Renewal(List.of()));
        assertThat(new String(new Notification.Renewal(List.of("a", "b")).encode(), UTF_8))
                .isEqualTo("HB:a,b");
    }

    @Test
    void aHeartbeatOfManyRequestsIsSplitIntoMessagesThatEveryPeerTakes() {
        List<String> ids =
                IntStream.range(0, 5_000).mapToObj(i -> i + "-" + "x".repeat(500)).toList();
        List<Notification.Renewal> renewals =
                Notification.Renewal.of(
                        new Heartbeat("P", "h", 1, 1, 0, Duration.ofSeconds(30), ids));
        assertThat(renewals)
                .allMatch(
                        renewal -> renewal.encode().length <= Notification.MAX_RENEWAL_BYTES + 16);
        assertThat(renewals.stream().flatMap(each -> each.requestIds().stream()))
                .containsExactlyElementsOf(ids);
        assertThat(
                        Notification.Renewal.of(
                                new Heartbeat(
                                        "P", "h", 1, 1, 0, Duration.ofSeconds(30), List.of())))
                .isEmpty();
    }

    @Test
    void aPushRegistrationHasVllmsBytes() {
        String golden =
                "8baa726571756573745f6964a26431b06465636f64655f656e67696e655f6964a26465ab6465636f"
                        + "64655f686f7374a168ab6465636f64655f706f7274cd15e0ae6465636f64655f74705f73"
                        + "697a6501af6c6f63616c5f626c6f636b5f69647391920102b072656d6f74655f656e6769"
                        + "6e655f6964a27065ab72656d6f74655f686f7374a27068ab72656d6f74655f706f7274cd"
                        + "15e1ae72656d6f74655f74705f73697a6501ae72656d6f74655f70705f73697a6501";
        PushRegistration registration = registration(null, 0, "", RemoteLease.UNKNOWN);
        byte[] bytes = registration.encode();
        assertThat(new String(bytes, 0, 9, UTF_8)).isEqualTo("PUSH_REG:");
        assertThat(HexFormat.of().formatHex(bytes, 9, bytes.length)).isEqualTo(golden);
        assertThat(Notification.decode(bytes)).isEqualTo(registration);
    }

    @Test
    void thisProductsKeysStandBehindVllms() {
        PushRegistration own = registration("i", 7, "p1", new RemoteLease(12.5, 480));
        PushRegistration plain = registration(null, 0, "", RemoteLease.UNKNOWN);
        assertThat(Notification.decode(own.encode())).isEqualTo(own);
        byte[] rest = plain.encode();
        assertThat(Arrays.copyOfRange(own.encode(), 12, rest.length + 2))
                .startsWith(Arrays.copyOfRange(rest, 10, rest.length));
    }

    @Test
    void endsSurviveTheWire() {
        for (boolean clear : new boolean[] {true, false}) {
            PushEnd end = new PushEnd("d1", clear);
            assertThat(Notification.decode(end.encode())).isEqualTo(end);
        }
    }

    @Test
    void brokenPushMessagesAreMalformed() {
        WireWriter notAMap = new WireWriter().array(1).string("request_id");
        WireWriter wrongType = new WireWriter().map(1).string("request_id").integer(1);
        for (String prefix : List.of(PushRegistration.PREFIX, PushEnd.PREFIX)) {
            for (WireWriter body : List.of(notAMap, wrongType, new WireWriter().map(0))) {
                assertThat(Notification.decode(Notification.prefixed(prefix, body)))
                        .isInstanceOf(Notification.Malformed.class);
            }
        }
        byte[] good = registration("i", 7, "p1", new RemoteLease(12.5, 480)).encode();
        for (int length = 9; length < good.length; length++) {
            assertThat(Notification.decode(Arrays.copyOf(good, length)))
                    .isInstanceOf(Notification.Malformed.class);
        }
        Seeded.forAll(
                500,
                random -> {
                    byte[] bytes = good.clone();
                    bytes[random.nextInt(9, bytes.length)] = (byte) random.nextInt();
                    assertThat(Notification.decode(bytes)).isNotNull();
                });
    }

    private static PushRegistration registration(
            @Nullable String instanceId, long epoch, String holderRequest, RemoteLease lease) {
        return new PushRegistration(
                new RemoteSource("de", instanceId, "d1", "h", 5600, 1, 1, epoch, lease),
                List.of(1, 2),
                new RemoteSource("pe", null, holderRequest, "ph", 5601, 1, 1, 0));
    }

    @Test
    void everythingElseIsMalformed() {
        for (String bad :
                List.of(
                        "",
                        ":",
                        ":1",
                        "r",
                        "r:",
                        "r:x",
                        "r:0",
                        "r:-1",
                        "r:+1",
                        "r: 1",
                        "r:1 ",
                        "r:9999999",
                        "r:१")) {
            assertThat(decode(bad)).as(bad).isInstanceOf(Notification.Malformed.class);
        }
        assertThat(Notification.decode(new byte[] {(byte) 0xff, ':', '1'}))
                .isInstanceOf(Notification.Malformed.class);
        assertThat(Notification.decode(new byte[Notification.MAX_BYTES + 1]))
                .isInstanceOf(Notification.Malformed.class);
    }

    @Test
    void theShortestAndTheLongestMessagesAreUnderstood() {
        assertThat(decode("r:1")).isEqualTo(new Notification.Completion("r", 1));
        String longest = "HB:" + "x".repeat(Notification.MAX_BYTES - 3);
        assertThat(decode(longest)).isInstanceOf(Notification.Renewal.class);
        assertThat(decode(longest + "x")).isInstanceOf(Notification.Malformed.class);
    }

    @Test
    void aHeartbeatFillsAMessageBeforeItBeginsTheNext() {
        String half = "x".repeat(Notification.MAX_RENEWAL_BYTES / 2 - 1);
        assertThat(renewals(List.of(half, half))).hasSize(1);
        assertThat(renewals(List.of(half, half + "x"))).hasSize(2);
        assertThat(renewals(List.of("x".repeat(Notification.MAX_RENEWAL_BYTES + 1)))).hasSize(1);
    }

    private static List<Notification.Renewal> renewals(List<String> ids) {
        return Notification.Renewal.of(
                new Heartbeat("P", "h", 1, 1, 0, Duration.ofSeconds(30), ids));
    }

    @Test
    void noBytesMakeDecodingThrow() {
        Seeded.forAll(
                2_000,
                random -> {
                    byte[] bytes = new byte[random.nextInt(24)];
                    for (int i = 0; i < bytes.length; i++) {
                        bytes[i] =
                                (byte)
                                        (random.nextBoolean()
                                                ? "HB:,1".charAt(random.nextInt(5))
                                                : random.nextInt());
                    }
                    assertThat(Notification.decode(bytes)).isNotNull();
                });
    }

    private static Notification decode(String text) {
        return Notification.decode(text.getBytes(UTF_8));
    }

    @Test
    void aCompletionOfAnIdThatNoEngineWouldGiveIsMalformed() {
        String id = "x".repeat(Notification.MAX_ID_CHARS);
        assertThat(Notification.decode((id + ":1").getBytes(UTF_8)))
                .isEqualTo(new Notification.Completion(id, 1));
        assertThat(Notification.decode((id + "x:1").getBytes(UTF_8)))
                .isInstanceOf(Notification.Malformed.class);
    }
}
