package dev.dormouse.model.gguf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Natives;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class GgufFileTest {
    @TempDir Path directory;

    private GgufFile open(GgufWriter writer) {
        return GgufFile.open(writer.write(directory.resolve("test.gguf")));
    }

    private static GgufWriter oneOfEachKind() {
        return new GgufWriter()
                .int8("u8", false, 200)
                .int8("i8", true, -100)
                .int16("u16", false, 60_000)
                .int16("i16", true, -30_000)
                .uint32("u32", 4_000_000_000L)
                .int32("i32", -2_000_000_000)
                .int64("u64", false, 1L << 62)
                .int64("i64", true, Long.MIN_VALUE)
                .float32("f32", 0.5f)
                .float64("f64", -2.25)
                .bool("yes", 1)
                .bool("no", 0)
                .string("text", "snow ☃")
                .string("empty", "")
                .strings("words", List.of("a", "", "ß"))
                .int32s("numbers", 3, -1, 7)
                .float32s("reals", 1.5f, -0.25f)
                .nested("nested", 3);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3})
    void readsEachMetadataType(int version) {
        try (GgufFile file = open(oneOfEachKind().version(version))) {
            GgufMetadata metadata = file.metadata();
            assertThat(metadata.integer("u8")).isEqualTo(200);
            assertThat(metadata.integer("i8")).isEqualTo(-100);
            assertThat(metadata.integer("u16")).isEqualTo(60_000);
            assertThat(metadata.integer("i16")).isEqualTo(-30_000);
            assertThat(metadata.integer("u32")).isEqualTo(4_000_000_000L);
            assertThat(metadata.integer("i32")).isEqualTo(-2_000_000_000);
            assertThat(metadata.integer("u64")).isEqualTo(1L << 62);
            assertThat(metadata.integer("i64")).isEqualTo(Long.MIN_VALUE);
            assertThat(metadata.real("f32")).isEqualTo(0.5);
            assertThat(metadata.real("f64")).isEqualTo(-2.25);
            assertThat(metadata.bool("yes")).isTrue();
            assertThat(metadata.bool("no")).isFalse();
            assertThat(metadata.string("text")).isEqualTo("snow ☃");
            assertThat(metadata.string("empty")).isEmpty();
            assertThat(metadata.strings("words")).containsExactly("a", "", "ß");
            assertThat(metadata.integers("numbers")).containsExactly(3, -1, 7);
            assertThat(metadata.reals("reals")).containsExactly(1.5, -0.25);
            assertThat(metadata.keys()).hasSize(18).startsWith("u8", "i8").endsWith("nested");
        }
    }

    @Test
    void saysWhatIsMissingAndWhatIsOfTheWrongType() {
        try (GgufFile file = open(oneOfEachKind())) {
            GgufMetadata metadata = file.metadata();
            assertThat(metadata.findString("none")).isEmpty();
            assertThat(metadata.findInteger("none")).isEmpty();
            assertThat(metadata.findReal("none")).isEmpty();
            assertThat(metadata.findBool("none")).isEmpty();
            assertThatThrownBy(() -> metadata.integer("none"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("test.gguf: 'none' is missing, must be an integer");
            assertThatThrownBy(() -> metadata.findInteger("f32"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("'f32' is a value of type float32, must be an integer");
            assertThatThrownBy(() -> metadata.strings("numbers"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining(
                            "'numbers' is an array of 3 int32, must be an array of strings");
            assertThatThrownBy(() -> metadata.positiveInt("i32"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("'i32' is -2000000000, must be from 1 to");
            assertThatThrownBy(() -> metadata.integers("words")).isInstanceOf(GgufException.class);
            assertThatThrownBy(() -> metadata.reals("numbers")).isInstanceOf(GgufException.class);
            assertThatThrownBy(() -> metadata.bool("u8")).isInstanceOf(GgufException.class);
            assertThatThrownBy(() -> metadata.string("words")).isInstanceOf(GgufException.class);
            assertThatThrownBy(() -> metadata.real("u8")).isInstanceOf(GgufException.class);
        }
    }

    @Test
    void refusesValuesThatDoNotFit() {
        GgufWriter writer =
                new GgufWriter()
                        .int64("huge", false, -1)
                        .bool("maybe", 2)
                        .rawEntry("bad", 8, new byte[] {1, 0, 0, 0, 0, 0, 0, 0, (byte) 0xff});
        try (GgufFile file = open(writer)) {
            assertThatThrownBy(() -> file.metadata().integer("huge"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("18446744073709551615");
            assertThatThrownBy(() -> file.metadata().bool("maybe"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("0 or 1");
            assertThatThrownBy(() -> file.metadata().string("bad"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("not UTF-8");
        }
    }

    @ParameterizedTest
    @EnumSource(TensorType.class)
    void slicesTensorsOfEachType(TensorType type) {
        byte[] first = new byte[type.blockBytes() * 3];
        byte[] second = new byte[type.blockBytes() * 4];
        Arrays.fill(first, (byte) 1);
        Arrays.fill(second, (byte) 2);
        GgufWriter writer =
                new GgufWriter()
                        .tensor("a", type, first, type.blockElements(), 3)
                        .tensor("b", type, second, 2L * type.blockElements(), 2);
        try (GgufFile file = open(writer)) {
            TensorInfo b = file.tensor("b");
            assertThat(b.shape()).containsExactly(2L * type.blockElements(), 2L);
            assertThat(b.rows()).isEqualTo(2);
            assertThat(b.rowBytes()).isEqualTo(2L * type.blockBytes());
            assertThat(b.elements()).isEqualTo(4L * type.blockElements());
            assertThat(b.lengthBytes()).isEqualTo(second.length);
            assertThat(b.fileOffset() % 32).isZero();
            MemorySegment data = file.data(b);
            assertThat(data.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(second);
            assertThat(data.isReadOnly()).isTrue();
            assertThat(file.data(file.tensor("a")).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(first);
            assertThat(file.tensors()).extracting(TensorInfo::name).containsExactly("a", "b");
        }
    }

    @Test
    void honoursTheAlignmentThatTheFileAsksFor() {
        GgufWriter writer =
                new GgufWriter()
                        .padTo(64)
                        .uint32("general.alignment", 64)
                        .tensor("a", TensorType.F32, new byte[4], 1)
                        .tensor("b", TensorType.F32, new byte[] {1, 2, 3, 4}, 1);
        try (GgufFile file = open(writer)) {
            assertThat(file.tensor("b").fileOffset() % 64).isZero();
            assertThat(file.data(file.tensor("b")).toArray(ValueLayout.JAVA_BYTE))
                    .containsExactly(1, 2, 3, 4);
        }
    }

    @Test
    void closeIsTerminalAndIdempotent() {
        GgufFile file =
                open(new GgufWriter().string("s", "x").tensor("a", TensorType.F32, new byte[4], 1));
        MemorySegment data = file.data(file.tensor("a"));
        file.close();
        file.close();
        assertThatThrownBy(() -> data.get(ValueLayout.JAVA_BYTE, 0))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> file.data(file.tensor("a")))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("'a' was asked after close");
        assertThatThrownBy(() -> file.metadata().string("s"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("'s' was asked after close");
    }

    @Test
    void refusesAForeignOrUnknownTensor() {
        try (GgufFile file = open(new GgufWriter().tensor("a", TensorType.F32, new byte[4], 1))) {
            TensorInfo forged = new TensorInfo("a", TensorType.F32, List.of(1L), 0, 1 << 30);
            assertThatThrownBy(() -> file.data(forged)).isInstanceOf(GgufException.class);
            assertThat(file.findTensor("b")).isEmpty();
            assertThatThrownBy(() -> file.tensor("b"))
                    .isInstanceOf(GgufException.class)
                    .hasMessageContaining("no tensor 'b'");
        }
    }

    @Test
    void saysThatAFileCannotBeRead() {
        assertThatThrownBy(() -> GgufFile.open(directory.resolve("absent.gguf")))
                .isInstanceOf(GgufException.class)
                .hasMessageContaining("absent.gguf");
        assertThatThrownBy(() -> GgufFile.open(directory)).isInstanceOf(GgufException.class);
    }

    @Test
    void opensTheDefaultModel() {
        try (GgufFile file = GgufFile.open(Natives.model())) {
            assertThat(file.metadata().string("general.architecture")).isEqualTo("llama");
            assertThat(file.metadata().positiveInt("llama.block_count")).isEqualTo(30);
            assertThat(file.metadata().strings("tokenizer.ggml.tokens")).hasSize(49_152);
            assertThat(file.tensors()).hasSize(272);
            TensorInfo embeddings = file.tensor("token_embd.weight");
            assertThat(embeddings.type()).isEqualTo(TensorType.Q8_0);
            assertThat(embeddings.shape()).containsExactly(576L, 49_152L);
            long end =
                    file.tensors().stream()
                            .mapToLong(t -> t.fileOffset() + t.lengthBytes())
                            .max()
                            .orElseThrow();
            assertThat(end).isEqualTo(file.lengthBytes());
        }
    }
}
