package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.model.gguf.TensorType;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Packed blocks against what {@code src/test/reference/make_quants.py} got for them, bit by bit.
 */
final class QuantReferenceTest {
    private static final JsonNode REFERENCE = read();

    private static JsonNode read() {
        try (InputStream in =
                QuantReferenceTest.class.getResourceAsStream("/reference/quants.json")) {
            return new ObjectMapper().readTree(Objects.requireNonNull(in));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"F32", "F16", "BF16"})
    void packedRowsAreTheReferences(TensorType type) throws IOException {
        JsonNode reference = REFERENCE.path(type.name());
        int rows = reference.path("rows").asInt();
        int width = reference.path("width").asInt();
        MemorySegment tensor = MemorySegment.ofArray(reference.path("bytes").binaryValue());
        ByteBuffer values =
                ByteBuffer.wrap(reference.path("values").binaryValue())
                        .order(ByteOrder.LITTLE_ENDIAN);
        PackedMatrix matrix = new PackedMatrix(type, rows, width, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment weights = arena.allocate(matrix.lengthBytes(), 64);
            MatrixSource source = MatrixSource.ofRows(RowOrder.AS_STORED, matrix);
            new MatrixPacker().pack(tensor, source, matrix, weights, 0);
            float[] row = new float[width];
            for (int n = 0; n < rows; n++) {
                PackedElements.readRow(matrix, weights, n, row, 0);
                for (int k = 0; k < width; k++) {
                    assertThat(row[k]).as("row %d, element %d", n, k).isEqualTo(values.getFloat());
                }
            }
        }
        assertThat(values.hasRemaining()).isFalse();
    }
}
