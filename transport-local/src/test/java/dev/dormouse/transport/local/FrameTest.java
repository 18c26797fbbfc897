package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** Bytes from peers. */
class FrameTest {
    private static final List<Frame> SAMPLES =
            List.of(
                    new Frame.Hello(new Token(1, 2), "reader", List.of(new Token(3, 4))),
                    new Frame.Grant(
                            new Token(5, 6),
                            "owner",
                            true,
                            new SharedMemory.HostFiles(2),
                            List.of(
                                    new SharedSegment(4096, 8192, 0, 0),
                                    new SharedSegment(1L << 46, 1L << 40, 1, 4096))),
                    new Frame.Grant(
                            new Token(5, 6),
                            "owner",
                            false,
                            new SharedMemory.DevicePieces(
                                    new UUID(7, 8), true, List.of(2L << 20, 1L << 40)),
                            List.of(new SharedSegment(4096, 1L << 40, 1, 7))),
                    new Frame.Refusal("no"),
                    new Frame.Revoke(),
                    new Frame.Offer(List.of(new Token(1, 2), new Token(3, 4))),
                    new Frame.Released());

    private static final LocalMetadata METADATA =
            new LocalMetadata(
                    new HostIdentity(new Token(1, 2), 3),
                    new Token(4, 5),
                    "socket",
                    "agent",
                    List.of(new Token(6, 7), new Token(8, 9)));

    @Test
    void framesAreReadAsTheyWereWritten() {
        for (Frame frame : SAMPLES) {
            assertThat(Frame.decode(frame.encode())).isEqualTo(frame);
        }
        assertThat(LocalMetadata.decode(METADATA.encode())).isEqualTo(METADATA);
    }

    @Test
    void messagesAreCutIntoPartsAndTheirEndIsMarked() {
        for (int length :
                new int[] {0, 1, Frame.PART_BYTES, Frame.PART_BYTES + 1, 5 * Frame.PART_BYTES}) {
            byte[] message = new byte[length];
            new SplittableRandom(length).nextBytes(message);
            List<byte[]> frames = Frame.ofMessage(message);
            int at = 0;
            for (int i = 0; i < frames.size(); i++) {
                Frame.Message part = (Frame.Message) Frame.decode(frames.get(i));
                assertThat(part.part())
                        .isEqualTo(Arrays.copyOfRange(message, at, at + part.part().length));
                at += part.part().length;
                assertThat(part.last()).isEqualTo(i == frames.size() - 1);
            }
            assertThat(at).isEqualTo(length);
        }
    }

    @Test
    void whateverBytesComeAFrameOrARefusalIsTheResult() {
        List<byte[]> samples = new ArrayList<>(SAMPLES.stream().map(Frame::encode).toList());
        samples.add(METADATA.encode());
        Seeded.forAll(
                3000,
                random -> {
                    byte[] bytes = samples.get(random.nextInt(samples.size())).clone();
                    int changes = random.nextInt(4);
                    for (int i = 0; i < changes; i++) {
                        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
                    }
                    byte[] cut = Arrays.copyOf(bytes, random.nextInt(bytes.length + 8));
                    try {
                        assertThat(Frame.decode(cut)).isNotNull();
                    } catch (TransportException expected) {
                        assertThat(expected).hasMessageStartingWith("read frame failed");
                    }
                    try {
                        assertThat(LocalMetadata.decode(cut)).isNotNull();
                    } catch (TransportException expected) {
                        assertThat(expected).hasMessageStartingWith("read same-host metadata");
                    }
                });
    }

    @Test
    void metadataThatIsCutOrLongerIsRefused() {
        byte[] good = METADATA.encode();
        for (int length = 0; length < good.length + 5; length++) {
            byte[] bytes = Arrays.copyOf(good, length);
            if (length != good.length) {
                assertThatThrownBy(() -> LocalMetadata.decode(bytes))
                        .isInstanceOf(TransportException.class);
            }
        }
    }

    @Test
    void namesThatWouldForgeLinesOfALogAreRefused() {
        for (String name : List.of("a\nb", "a\u0000", "\u001b[31m", "")) {
            byte[] bytes = new Frame.Hello(new Token(1, 2), name, List.of()).encode();
            assertThatThrownBy(() -> Frame.decode(bytes))
                    .isInstanceOf(TransportException.class)
                    .hasMessageContaining("control characters");
        }
    }
}
