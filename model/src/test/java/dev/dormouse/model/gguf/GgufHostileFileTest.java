package dev.dormouse.model.gguf;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files that lie: each must end in a {@link GgufException}, and cost no memory to speak of. */
final class GgufHostileFileTest {
    @TempDir Path directory;

    static Stream<Arguments> wrongFiles() {
        byte[] four = new byte[4];
        return Stream.of(
                Arguments.of("version 1", new GgufWriter().version(1), "version 1"),
                Arguments.of("version 4", new GgufWriter().version(4), "supported are"),
                Arguments.of("big endian", new GgufWriter().version(3 << 24), "big-endian"),
                Arguments.of(
                        "metadata count",
                        new GgufWriter().lieAboutEntries(1L << 60),
                        "metadata count"),
                Arguments.of(
                        "negative metadata count",
                        new GgufWriter().lieAboutEntries(-1),
                        "18446744073709551615"),
                Arguments.of(
                        "tensor count", new GgufWriter().lieAboutTensors(1L << 33), "tensor count"),
                Arguments.of(
                        "more entries than there are",
                        new GgufWriter().string("k", "v".repeat(64)).lieAboutEntries(1),
                        "the key of metadata entry 1 is empty"),
                Arguments.of(
                        "key twice",
                        new GgufWriter().bool("k", 1).bool("k", 0),
                        "'k' occurs twice"),
                Arguments.of(
                        "unknown value type",
                        new GgufWriter().rawEntry("k", 13, new byte[1]),
                        "value type 13"),
                Arguments.of(
                        "unknown element type",
                        new GgufWriter().hollowArray("k", 99, 0),
                        "value type 99"),
                Arguments.of(
                        "string longer than the file",
                        new GgufWriter()
                                .rawEntry("k", 8, new byte[] {-1, -1, -1, -1, -1, -1, -1, 127}),
                        "9223372036854775807"),
                Arguments.of(
                        "array of strings longer than the file",
                        new GgufWriter().hollowArray("k", 8, 1L << 40),
                        "array 'k'"),
                Arguments.of(
                        "array whose size overflows",
                        new GgufWriter().hollowArray("k", 10, (1L << 61) + 1),
                        "array 'k'"),
                Arguments.of("deep nesting", new GgufWriter().nested("k", 64), "nests arrays"),
                Arguments.of(
                        "odd alignment",
                        new GgufWriter().uint32("general.alignment", 48),
                        "power of two"),
                Arguments.of(
                        "zero alignment",
                        new GgufWriter().uint32("general.alignment", 0),
                        "power of two"),
                Arguments.of(
                        "huge alignment",
                        new GgufWriter().int64("general.alignment", false, 1L << 62),
                        "power of two"),
                Arguments.of(
                        "alignment of the wrong type",
                        new GgufWriter().string("general.alignment", "32"),
                        "must be an integer"),
                Arguments.of(
                        "tensor twice",
                        new GgufWriter()
                                .tensor("t", TensorType.F32, four, 1)
                                .tensor("t", TensorType.F32, four, 1),
                        "'t' occurs twice"),
                Arguments.of(
                        "no dimensions", new GgufWriter().tensorInfo("t", 0, 0), "0 dimensions"),
                Arguments.of(
                        "five dimensions",
                        new GgufWriter().tensorInfo("t", 0, 0, 1, 1, 1, 1, 1),
                        "5 dimensions"),
                Arguments.of(
                        "zero extent", new GgufWriter().tensorInfo("t", 0, 0, 4, 0), "dimension 1"),
                Arguments.of(
                        "negative extent",
                        new GgufWriter().tensorInfo("t", 0, 0, -4),
                        "dimension 0"),
                Arguments.of(
                        "overflowing shape",
                        new GgufWriter().tensorInfo("t", 0, 0, 1L << 40, 1L << 40),
                        "exceeds 63 bits"),
                Arguments.of(
                        "overflowing size",
                        new GgufWriter().tensorInfo("t", 0, 0, 1L << 62),
                        "exceeds 63 bits"),
                Arguments.of(
                        "half a block",
                        new GgufWriter().tensorInfo("t", 2, 0, 48),
                        "48 elements, no multiple of Q4_0's block of 32"),
                Arguments.of(
                        "unsupported type",
                        new GgufWriter().tensorInfo("blk.0.ffn_up.weight", 10, 0, 256),
                        "tensor 'blk.0.ffn_up.weight' is of type Q2_K (10); supported are [F32,"),
                Arguments.of(
                        "unknown type", new GgufWriter().tensorInfo("t", -1, 0, 1), "4294967295"),
                Arguments.of(
                        "data beyond the end",
                        new GgufWriter()
                                .tensor("t", TensorType.F32, four, 1)
                                .tensorInfo("u", 0, 32, 1),
                        "'u' of 4 bytes at offset 32"),
                Arguments.of(
                        "negative offset", new GgufWriter().tensorInfo("t", 0, -32, 1), "leaves"),
                Arguments.of(
                        "data longer than the file",
                        new GgufWriter()
                                .tensor("t", TensorType.F32, four, 1)
                                .tensorInfo("u", 0, 0, 1L << 50),
                        "leaves"),
                Arguments.of(
                        "unaligned offset",
                        new GgufWriter()
                                .tensor("t", TensorType.F32, new byte[64], 16)
                                .tensorInfo("u", 0, 4, 1),
                        "multiple of 32"),
                Arguments.of(
                        "overlap",
                        new GgufWriter()
                                .tensor("t", TensorType.F32, new byte[64], 16)
                                .tensorInfo("u", 0, 32, 1),
                        "'t' and 'u' overlap"),
                Arguments.of(
                        "long tensor name",
                        new GgufWriter().tensorInfo("n".repeat(65), 0, 0, 1),
                        "the limit is 64"));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("wrongFiles")
    void refuses(String name, GgufWriter writer, String message) {
        Path path = writer.write(directory.resolve("wrong.gguf"));
        assertThatThrownBy(() -> GgufFile.open(path).close())
                .isInstanceOf(GgufException.class)
                .hasMessageContaining("wrong.gguf")
                .hasMessageContaining(message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "G", "GGUF", "GGML\3\0\0\0________________", "<html>404</html>"})
    void refusesWhatIsNoGguf(String content) throws IOException {
        Path path = Files.writeString(directory.resolve("other.gguf"), content);
        assertThatThrownBy(() -> GgufFile.open(path).close()).isInstanceOf(GgufException.class);
    }

    @Test
    void refusesEachTruncation() throws IOException {
        byte[] whole = sample();
        Path path = directory.resolve("short.gguf");
        for (int length = 0; length < whole.length; length++) {
            Files.write(path, Arrays.copyOf(whole, length));
            assertThatThrownBy(() -> GgufFile.open(path).close())
                    .as("cut to %d of %d bytes", length, whole.length)
                    .isInstanceOf(GgufException.class);
        }
    }

    @Test
    void survivesFlippedBytes() {
        byte[] whole = sample();
        Path path = directory.resolve("flipped.gguf");
        Seeded.forAll(
                1_000,
                random -> {
                    byte[] flipped = whole.clone();
                    int flips = random.nextInt(1, 5);
                    for (int i = 0; i < flips; i++) {
                        flipped[random.nextInt(flipped.length)] = oddByte(random);
                    }
                    Files.write(path, flipped);
                    readEverything(path);
                });
    }

    /** Bytes that make extreme numbers come up often. */
    private static byte oddByte(SplittableRandom random) {
        return switch (random.nextInt(4)) {
            case 0 -> (byte) 0xff;
            case 1 -> (byte) 0x7f;
            case 2 -> (byte) random.nextInt(16);
            default -> (byte) random.nextInt(256);
        };
    }

    private static byte[] sample() {
        return new GgufWriter()
                .string("general.architecture", "llama")
                .uint32("general.alignment", 32)
                .strings("tokens", List.of("a", "b", "longer token"))
                .int32s("types", 1, 3, 1)
                .float32s("scores", 0.5f)
                .float64("f64", 1.0)
                .bool("flag", 1)
                .nested("nested", 2)
                .tensor("first", TensorType.F32, new byte[48], 4, 3)
                .tensor("second", TensorType.Q4_1, new byte[40], 32, 2)
                .toBytes();
    }

    /** Touches all that an opened file offers; only the declared failure may come out of it. */
    private static void readEverything(Path path) {
        try (GgufFile file = GgufFile.open(path)) {
            for (TensorInfo tensor : file.tensors()) {
                long sum = 0;
                for (byte b : file.data(tensor).toArray(ValueLayout.JAVA_BYTE)) {
                    sum += b;
                }
                if (sum == Long.MIN_VALUE) {
                    throw new AssertionError("unreachable; keeps the reads alive");
                }
            }
            GgufMetadata metadata = file.metadata();
            for (String key : metadata.keys()) {
                List<Runnable> reads =
                        List.of(
                                () -> metadata.findString(key),
                                () -> metadata.findBool(key),
                                () -> metadata.findInteger(key),
                                () -> metadata.findReal(key),
                                () -> metadata.strings(key),
                                () -> metadata.integers(key),
                                () -> metadata.reals(key));
                reads.forEach(GgufHostileFileTest::allowGgufException);
            }
        } catch (GgufException e) {
            // A refusal is the right answer to most flips.
        }
    }

    private static void allowGgufException(Runnable read) {
        try {
            read.run();
        } catch (GgufException e) {
            // A value of another type, or no longer UTF-8.
        }
    }
}
