package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Seeded;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Messages between workers, which anybody could send. */
final class NotificationTest {
    @Test
    void aCompletionIsSplitAtItsLastColon() {
        assertThat(decode("cmpl-a:b-1:2")).isEqualTo(new Notification.Completion("cmpl-a:b-1", 2));
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
                Notification.Renewal.of(new Heartbeat("P", "h", 1, 1, Duration.ofSeconds(30), ids));
        assertThat(renewals)
                .allMatch(
                        renewal -> renewal.encode().length <= Notification.MAX_RENEWAL_BYTES + 16);
        assertThat(renewals.stream().flatMap(each -> each.requestIds().stream()))
                .containsExactlyElementsOf(ids);
        assertThat(
                        Notification.Renewal.of(
                                new Heartbeat("P", "h", 1, 1, Duration.ofSeconds(30), List.of())))
                .isEmpty();
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
}
