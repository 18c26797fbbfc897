package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.testkit.Seeded;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

final class MatrixMultiplyTest {
    /** A multiple of every type's block. */
    private static final int INPUTS = 256;

    /** Matrices of the same inputs, packed one behind the other. */
    private record Packed(
            List<PackedMatrix> matrices, List<byte[]> tensors, MemorySegment weights) {
        int outputs() {
            return matrices.stream().mapToInt(PackedMatrix::outputs).sum();
        }

        double weight(int output, int input) {
            int n = output;
            for (int i = 0; i < matrices.size(); i++) {
                PackedMatrix matrix = matrices.get(i);
                if (n < matrix.outputs()) {
                    return TensorBytes.value(
                            matrix.type(), tensors.get(i), n * matrix.inputs() + input);
                }
                n -= matrix.outputs();
            }
            throw new IndexOutOfBoundsException(output);
        }
    }

    private static Packed pack(List<TensorType> types, SplittableRandom random, Arena arena) {
        List<PackedMatrix> matrices = new ArrayList<>();
        List<byte[]> tensors = new ArrayList<>();
        long offset = 0;
        for (TensorType type : types) {
            int outputs = 1 + random.nextInt(80);
            matrices.add(new PackedMatrix(type, outputs, INPUTS, offset));
            tensors.add(TensorBytes.random(type, outputs, INPUTS, 1.0f, random));
            offset += matrices.getLast().lengthBytes();
        }
        MemorySegment weights = arena.allocate(offset, 64);
        weights.fill((byte) 0xEE);
        MatrixPacker packer = new MatrixPacker();
        for (int i = 0; i < types.size(); i++) {
            for (int panel = 0; panel < matrices.get(i).panels(); panel++) {
                packer.pack(
                        MemorySegment.ofArray(tensors.get(i)),
                        MatrixSource.ofRows(RowOrder.AS_STORED, matrices.get(i)),
                        matrices.get(i),
                        weights,
                        panel);
            }
        }
        return new Packed(matrices, tensors, weights);
    }

    private static float[] randomRows(int rows, SplittableRandom random) {
        float[] x = new float[rows * INPUTS];
        for (int i = 0; i < x.length; i++) {
            x[i] = (float) (random.nextDouble() * 4 - 2);
        }
        return x;
    }

    private static float[] multiply(
            Kernels kernels, int threads, Packed packed, float[] x, int first, int rows) {
        BlockedRows blocked = new BlockedRows();
        blocked.reshape(rows, INPUTS);
        for (int r = 0; r < rows; r++) {
            kernels.copyRow(x, (first + r) * INPUTS, INPUTS, blocked, r);
        }
        float[] out = new float[rows * packed.outputs()];
        try (ComputeThreads pool = new ComputeThreads(threads)) {
            new MatrixMultiply(kernels, pool)
                    .run(packed.matrices, packed.weights, blocked, out, 0, packed.outputs());
        }
        return out;
    }

    @ParameterizedTest
    @EnumSource
    void outputsAreTheSumsOfWeightsTimesInputs(TensorType type) {
        Seeded.forAll(
                4,
                random -> {
                    try (Arena arena = Arena.ofShared()) {
                        Packed packed = pack(List.of(type, TensorType.Q8_0), random, arena);
                        int rows = 1 + random.nextInt(9);
                        float[] x = randomRows(rows, random);
                        float[] out = multiply(Kernels.best(), 2, packed, x, 0, rows);
                        for (int r = 0; r < rows; r++) {
                            for (int n = 0; n < packed.outputs(); n++) {
                                double sum = 0;
                                for (int k = 0; k < INPUTS; k++) {
                                    sum += x[r * INPUTS + k] * packed.weight(n, k);
                                }
                                assertThat((double) out[r * packed.outputs() + n])
                                        .as("row %d of %d, output %d", r, rows, n)
                                        .isCloseTo(sum, Offset.offset(1e-4));
                            }
                        }
                    }
                });
    }

    @ParameterizedTest
    @EnumSource
    void aRowsResultDependsNeitherOnOtherRowsNorOnThreads(TensorType type) {
        Seeded.forAll(
                3,
                random -> {
                    try (Arena arena = Arena.ofShared()) {
                        Packed packed = pack(List.of(type, type), random, arena);
                        float[] x = randomRows(14, random);
                        float[] all = multiply(Kernels.best(), 1, packed, x, 0, 14);
                        assertThat(multiply(Kernels.best(), 3, packed, x, 0, 14)).isEqualTo(all);
                        assertThat(multiply(new ScalarKernels(), 1, packed, x, 0, 14))
                                .isEqualTo(all);
                        for (int rows = 1; rows < 8; rows++) {
                            int first = random.nextInt(14 - rows);
                            int width = packed.outputs();
                            float[] some = multiply(Kernels.best(), 1, packed, x, first, rows);
                            for (int i = 0; i < rows * width; i++) {
                                assertThat(some[i])
                                        .as("%d rows from %d, element %d", rows, first, i)
                                        .isEqualTo(all[first * width + i]);
                            }
                        }
                    }
                });
    }

    @Test
    void oneRowOfAMatrixCanBeReadAsAnEmbedding() {
        Seeded.forAll(
                6,
                random -> {
                    for (TensorType type : TensorType.values()) {
                        try (Arena arena = Arena.ofShared()) {
                            Packed packed = pack(List.of(type), random, arena);
                            int output = random.nextInt(packed.outputs());
                            float[] row = new float[INPUTS + 1];
                            PackedElements.readRow(
                                    packed.matrices.getFirst(), packed.weights, output, row, 1);
                            for (int k = 0; k < INPUTS; k++) {
                                assertThat((double) row[1 + k])
                                        .as("%s output %d element %d", type, output, k)
                                        .isCloseTo(packed.weight(output, k), Offset.offset(1e-6));
                            }
                        }
                    }
                });
    }

    @Test
    void theOutputsPastTheLastOneAreZeroWeights() {
        try (Arena arena = Arena.ofShared()) {
            SplittableRandom random = new SplittableRandom(5);
            byte[] tensor = TensorBytes.random(TensorType.Q4_1, 33, INPUTS, 1.0f, random);
            PackedMatrix matrix = new PackedMatrix(TensorType.Q4_1, 33, INPUTS, 0);
            MemorySegment weights = arena.allocate(matrix.lengthBytes(), 64);
            weights.fill((byte) 0xEE);
            MatrixPacker packer = new MatrixPacker();
            MatrixSource source = MatrixSource.ofRows(RowOrder.AS_STORED, matrix);
            packer.pack(MemorySegment.ofArray(tensor), source, matrix, weights, 0);
            packer.pack(MemorySegment.ofArray(tensor), source, matrix, weights, 1);
            float[] heads = new float[2 * Kernels.TILE];
            Kernels.best().heads(matrix, weights, matrix.blockOffset(1, 0), heads);
            assertThat(heads[0]).isNotZero();
            assertThat(java.util.Arrays.copyOfRange(heads, 1, Kernels.TILE)).containsOnly(0.0f);
        }
    }
}
