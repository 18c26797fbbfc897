package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Limits of the messages of pushes, and what of another version they bear. */
final class PushMessageTest {
    private static final PushRegistration REGISTRATION = registration(5600, 1, 1);

    /** One of each kind, in maps so small that their size is one byte. */
    private static final Map<String, byte[]> MESSAGES =
            Map.of(
                    PushRegistration.PREFIX,
                    REGISTRATION.encode(),
                    PushEnd.PREFIX,
                    new PushEnd("d1", true).encode());

    @Test
    void keysOfLaterVersionsAreIgnored() {
        MESSAGES.forEach(
                (prefix, message) -> {
                    byte[] more =
                            new WireWriter()
                                    .string("a later version's")
                                    .array(1)
                                    .integer(3)
                                    .bytes();
                    byte[] longer = appended(message, more);
                    longer[prefix.getBytes(UTF_8).length]++; // entries of the map
                    assertThat(Notification.decode(longer))
                            .as(prefix)
                            .isEqualTo(Notification.decode(message))
                            .isNotInstanceOf(Notification.Malformed.class);
                });
    }

    @Test
    void bytesBehindTheEndAreMalformed() {
        MESSAGES.forEach(
                (prefix, message) ->
                        assertThat(Notification.decode(appended(message, new byte[] {1})))
                                .as(prefix)
                                .isInstanceOf(Notification.Malformed.class));
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1, 1, true",
        "65535, 1024, 1024, true",
        "0, 1, 1, false",
        "65536, 1, 1, false",
        "1, 0, 1, false",
        "1, 1025, 1, false",
        "1, 1, 0, false",
        "1, 1, 1025, false"
    })
    void portsAndSizesThatCannotBeAreMalformed(
            int port, int decoderRanks, int holderRanks, boolean valid) {
        PushRegistration registration = registration(port, decoderRanks, holderRanks);
        assertDecodes(registration, valid);
    }

    @ParameterizedTest
    @CsvSource({
        "1e9, 86400, true",
        "-1e9, 0, true",
        "NaN, 0, true",
        "1000000000.5, 1, false",
        "-1000000000.5, 1, false",
        "1, 86400.5, false",
        "1, -0.5, false",
        "1, NaN, false"
    })
    void leasesThatNoClockTellsAreMalformed(double deadline, double length, boolean valid) {
        assertDecodes(
                new PushRegistration(
                        new RemoteSource(
                                "de",
                                "i",
                                "d1",
                                "h",
                                5600,
                                1,
                                1,
                                7,
                                new RemoteLease(deadline, length)),
                        List.of(1, 2),
                        REGISTRATION.holder()),
                valid);
    }

    private static void assertDecodes(PushRegistration registration, boolean valid) {
        Notification decoded = Notification.decode(registration.encode());
        if (valid) {
            assertThat(decoded).isEqualTo(registration);
        } else {
            assertThat(decoded).isInstanceOf(Notification.Malformed.class);
        }
    }

    private static PushRegistration registration(int port, int decoderRanks, int holderRanks) {
        return new PushRegistration(
                new RemoteSource("de", null, "d1", "h", port, decoderRanks, 1, 0),
                List.of(1, 2),
                new RemoteSource("pe", null, "", "ph", 5601, holderRanks, holderRanks, 0));
    }

    private static byte[] appended(byte[] message, byte[] more) {
        byte[] all = Arrays.copyOf(message, message.length + more.length);
        System.arraycopy(more, 0, all, message.length, more.length);
        return all;
    }
}
