package dev.dormouse.model.folder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.ModelException;
import dev.dormouse.model.TestFolders;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Headers that lie. */
final class SafetensorsHostileFileTest {
    @TempDir private Path directory;

    private static String tensor(String name, String type, String shape, long from, long to) {
        return "\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}"
                .formatted(name, type, shape, from, to);
    }

    private static byte[] bytes(long length, String header, int data) {
        byte[] json = header.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(8 + json.length + data)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(length)
                .put(json)
                .array();
    }

    private Path write(byte[] bytes) {
        try {
            return Files.write(directory.resolve("model.safetensors"), bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Path file(int data, String... tensors) {
        String header = "{" + String.join(",", tensors) + "}";
        return write(bytes(header.length(), header, data));
    }

    private static void assertRefused(Path file, String message) {
        assertThatThrownBy(() -> SafetensorsFile.open(file).close())
                .isInstanceOf(ModelException.class)
                .hasMessageContaining(message)
                .hasMessageContaining(file.toString());
    }

    @Test
    void tensorsAreReadInTheOrderOfTheirData() {
        Path path =
                file(
                        20,
                        "\"__metadata__\":{\"format\":\"pt\"}",
                        tensor("b", "F32", "[2]", 12, 20),
                        tensor("a", "BF16", "[2,3]", 0, 12));
        SafetensorsFile file = SafetensorsFile.open(path);
        try (file) {
            assertThat(file.tensors().keySet()).containsExactly("a", "b");
            TensorInfo a = Objects.requireNonNull(file.tensors().get("a"));
            assertThat(a.type()).isEqualTo(TensorType.BF16);
            assertThat(a.shape()).containsExactly(3L, 2L);
            assertThat(file.data(a).byteSize()).isEqualTo(12);
            assertThat(file.data(a).isReadOnly()).isTrue();
        }
        TensorInfo a = Objects.requireNonNull(file.tensors().get("a"));
        assertThatThrownBy(() -> file.data(a)).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void lengthsOfHeadersThatTheFileCannotHoldAreRefused() {
        assertRefused(write(new byte[0]), "not a safetensors file");
        assertRefused(write(new byte[7]), "not a safetensors file");
        assertRefused(write(bytes(3, "{}", 0)), "has 3 of 2 bytes");
        assertRefused(write(bytes(-1, "{}", 0)), "18446744073709551615");
        assertRefused(write(bytes(Long.MAX_VALUE, "{}", 0)), "limit is 16777216");
        assertRefused(write(bytes((16 << 20) + 1, "{}", (16 << 20) + 1)), "limit is 16777216");
    }

    @Test
    void headersThatAreNoPlainObjectsAreRefused() {
        assertRefused(write(bytes(2, "[]", 0)), "must be an object");
        assertRefused(write(bytes(9, "{\"a\":nul}", 0)), "not JSON");
        assertRefused(write(bytes(4, "{}{}", 0)), "not JSON");
        assertRefused(file(0, "\"a\":7"), "must be an object");
        String a = tensor("a", "F32", "[1]", 0, 4);
        assertRefused(file(4, a, a), "not JSON");
        String deep = "\"a\":" + "[".repeat(5000) + "]".repeat(5000);
        assertRefused(file(0, deep), "not JSON");
    }

    @Test
    void offsetsThatOverlapOrLeaveGapsAreRefused() {
        assertRefused(
                file(12, tensor("a", "F32", "[2]", 0, 8), tensor("b", "F32", "[2]", 4, 12)),
                "starts at byte 4");
        assertRefused(
                file(12, tensor("a", "F32", "[1]", 0, 4), tensor("b", "F32", "[1]", 8, 12)),
                "starts at byte 8");
        assertRefused(file(8, tensor("a", "F32", "[1]", 0, 4)), "fill 4 of 8 bytes");
        assertRefused(file(8, tensor("a", "F32", "[1]", 4, 8)), "starts at byte 4");
    }

    @Test
    void offsetsThatDoNotFitTheShapeOrTheFileAreRefused() {
        assertRefused(file(8, tensor("a", "F32", "[1]", 0, 8)), "of 4 bytes has offsets [0, 8]");
        assertRefused(file(4, tensor("a", "F32", "[2]", 0, 8)), "in 4 bytes of data");
        assertRefused(file(8, tensor("a", "F32", "[2]", 8, 0)), "has offsets [8, 0]");
        assertRefused(file(8, tensor("a", "F32", "[2]", -8, 0)), "integers from 0 on");
        assertRefused(
                file(8, tensor("a", "F32", "[2]", 0, 8).replace("8]", "18446744073709551624]")),
                "integers from 0 on");
        assertRefused(file(4, tensor("a", "F32", "[1]", 0, 4).replace("[0,4]", "[4]")), "offsets");
    }

    @Test
    void shapesAndTypesThatAreNotSupportedAreRefused() {
        assertRefused(file(0, tensor("a", "F32", "[]", 0, 0)), "has shape []");
        assertRefused(file(0, tensor("a", "F32", "[0]", 0, 0)), "has shape [0]");
        assertRefused(file(4, tensor("a", "F32", "[1,1,1,1,1]", 0, 4)), "1 to 4");
        assertRefused(file(4, tensor("a", "F32", "[4294967296,4294967296]", 0, 4)), "63 bits");
        assertRefused(file(4, tensor("a", "F32", "[2.5]", 0, 4)), "integers from 0 on");
        assertRefused(file(4, tensor("a", "F8_E4M3", "[4]", 0, 4)), "is of type F8_E4M3");
        assertRefused(file(4, "\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}"), "'dtype'");
    }

    /** Whatever a byte is changed to, the file opens or is refused; nothing else happens. */
    @Test
    void anyChangeOfAHeaderIsNoticedOrHarmless() throws IOException {
        byte[] original =
                Files.readAllBytes(TestFolders.folder("qwen2").resolve("model.safetensors"));
        long header = ByteBuffer.wrap(original).order(ByteOrder.LITTLE_ENDIAN).getLong(0);
        Seeded.forAll(
                300,
                random -> {
                    byte[] changed = original.clone();
                    for (int i = 0; i <= random.nextInt(3); i++) {
                        int at = random.nextInt((int) header + 8);
                        changed[at] = (byte) (random.nextBoolean() ? random.nextInt() : '9');
                    }
                    Path path = write(changed);
                    try (SafetensorsFile file = SafetensorsFile.open(path)) {
                        for (TensorInfo tensor : List.copyOf(file.tensors().values())) {
                            long last = tensor.lengthBytes() - 1;
                            var _ = file.data(tensor).get(ValueLayout.JAVA_BYTE, last);
                        }
                    } catch (ModelException e) {
                        assertThat(e).hasMessageContaining(path.toString());
                    }
                });
    }
}
