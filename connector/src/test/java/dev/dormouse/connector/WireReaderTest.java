package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** What a peer's bytes may be, and what is said of those that are not. */
final class WireReaderTest {
    private static final int LIMIT = 1 << 20;
    private static final int MAX_DEPTH = 16;

    @Test
    void aValueOfAnotherTypeIsRefusedWithBothTypes() {
        byte[] nil = {(byte) 0xc0};
        Map<String, Consumer<WireReader>> readers =
                Map.of(
                        "STRING", in -> in.string("f", 9),
                        "BINARY", in -> in.binary("f", 9),
                        "INTEGER", in -> in.integer("f", 0, 9),
                        "FLOAT", in -> in.float64("f"),
                        "ARRAY", in -> in.arraySize("f", 9),
                        "MAP", in -> in.mapSize("f", 9));
        readers.forEach(
                (type, reader) ->
                        refused(() -> reader.accept(reader(nil)), "f is NIL, not " + type));
    }

    @Test
    void sizesAboveTheirLimitAreRefused() {
        refused(
                () -> reader(new WireWriter().string("abcde").bytes()).string("f", 4),
                "f has size 5, limit 4");
        refused(
                () -> reader(new WireWriter().binary(new byte[5]).bytes()).binary("f", 4),
                "f has size 5, limit 4");
        byte[] list = new WireWriter().integers(List.of(1L, 2L, 3L)).bytes();
        refused(() -> reader(list).arraySize("f", 2), "f has size 3, limit 2");
        assertThat(reader(list).arraySize("f", 3)).isEqualTo(3);
    }

    @Test
    void sizesAboveWhatIsLeftAreRefusedBeforeAnythingIsTaken() {
        refused(() -> reader(hex("d964" + "616263")).string("f", 200), "f has size 100, limit 3");
        refused(() -> reader(hex("c464" + "616263")).binary("f", 200), "f has size 100, limit 3");
        refused(() -> reader(hex("d964" + "616263")).skip("f"), "f has size 100, limit 3");
        refused(() -> reader(hex("dc0064" + "c0")).arraySize("f", 200), "f has size 100, limit 1");
    }

    @Test
    void bytesBehindTheEndAreCounted() {
        WireReader in = reader(hex("c0" + "c0c0"));
        assertThat(in.nil()).isTrue();
        refused(in::end, "2 bytes follow its end");
    }

    @Test
    void anEntryOfAMapCountsAsTwoElements() {
        int entries = WireReader.MAX_ELEMENTS / 2;
        byte[] bytes = Arrays.copyOf(hex("df" + "%08x".formatted(entries)), entries + 100);
        bytes[5] = (byte) 0x91; // an array of one follows
        WireReader in = reader(bytes);
        assertThat(in.mapSize("f", entries)).isEqualTo(entries);
        refused(() -> in.arraySize("g", 1), "more than " + WireReader.MAX_ELEMENTS + " elements");
    }

    @Test
    void whatIsSkippedMayBeNestedUpToALimit() {
        WireReader deep = reader(nested(MAX_DEPTH));
        deep.skip("f");
        deep.end();
        refused(
                () -> reader(nested(MAX_DEPTH + 1)).skip("f"),
                "f is nested deeper than " + MAX_DEPTH);
    }

    @Test
    void aValueOfAnyTypeIsSkippedAsAWhole() {
        WireReader in =
                reader(
                        new WireWriter()
                                .map(2)
                                .string("a")
                                .strings(List.of("b", "c"))
                                .binary(new byte[3])
                                .float64(1)
                                .integer(7)
                                .bytes());
        in.skip("f");
        assertThat(in.integer("g", 0, 9)).isEqualTo(7);
        in.end();
    }

    /** A nil in so many arrays. */
    private static byte[] nested(int depth) {
        return hex("91".repeat(depth) + "c0");
    }

    private static void refused(ThrowingCallable action, String message) {
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(action)
                .withMessageContaining(message);
    }

    private static WireReader reader(byte[] bytes) {
        return new WireReader("test", bytes, LIMIT);
    }

    private static byte[] hex(String text) {
        return HexFormat.of().parseHex(text);
    }
}
