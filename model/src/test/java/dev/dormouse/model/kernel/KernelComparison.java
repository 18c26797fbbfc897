package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.Kernels.TILE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.KvType;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.testkit.Seeded;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;

/**
 * Compares the vector kernels with the scalar ones, bit for bit.
 *
 * <p>{@link KernelsTest} runs each method in a class loader of its own, where the vector width is
 * what the name says, also where the machine has no such vectors.
 */
public final class KernelComparison {
    private static final int CASES = 6;

    /** Of weights; the first one makes subnormal half precision numbers. */
    private static final float[] SCALES = {0x1p-18f, 2.0f, 0x1p13f};

    /** Of a block's elements. */
    private static final float[] MAGNITUDES = {0x1p-100f, 0x1p-60f, 0x1p60f};

    private static final Kernels SCALAR = new ScalarKernels();
    private static final Kernels VECTOR = new VectorKernels();

    private KernelComparison() {}

    /** The width that the kernels under test have. */
    public static String name() {
        return VECTOR.name();
    }

    /** Scales, minima and tiles of every type. */
    public static void headsAndTiles() {
        forEachType(
                (matrix, weights, random) -> {
                    long block = matrix.blockOffset(matrix.panels() - 1, matrix.blocks() - 1);
                    float[] expected = new float[TILE * TILE];
                    float[] actual = new float[TILE * TILE];
                    SCALAR.heads(matrix, weights, block, expected);
                    VECTOR.heads(matrix, weights, block, actual);
                    assertSame("heads " + matrix, actual, expected);
                    SCALAR.expand(matrix, weights, block, expected);
                    VECTOR.expand(matrix, weights, block, actual);
                    assertSame("tile " + matrix, actual, expected);
                });
    }

    /** One and two rows times a packed block. */
    public static void packedProducts() {
        forEachType(
                (matrix, weights, random) -> {
                    for (int rows = 1; rows <= 2 && matrix.isQuantised(); rows++) {
                        int length = (3 + rows) * matrix.inputs();
                        packedProduct(matrix, weights, rows, floats(length, random), random);
                        packedProduct(matrix, weights, rows, extremes(length, random), random);
                    }
                });
    }

    private static void packedProduct(
            PackedMatrix matrix,
            MemorySegment weights,
            int rows,
            float[] elements,
            SplittableRandom random) {
        int width = matrix.inputs();
        BlockedRows x = new BlockedRows();
        x.reshape(3 + rows, width);
        for (int row = 0; row < 3 + rows; row++) {
            SCALAR.copyRow(elements, row * width, width, x, row);
        }
        int block = random.nextInt(matrix.blocks());
        long offset = matrix.blockOffset(matrix.panels() - 1, block);
        float[] expected = new float[2 * TILE];
        float[] actual = new float[2 * TILE];
        float[] prepared = new float[rows * width];
        SCALAR.prepareRows(matrix.type(), x, 3, prepared);
        SCALAR.packedProduct(matrix, weights, offset, prepared, block * TILE, rows, expected);
        VECTOR.prepareRows(matrix.type(), x, 3, prepared);
        VECTOR.packedProduct(matrix, weights, offset, prepared, block * TILE, rows, actual);
        assertSame(rows + " rows " + matrix, actual, expected);
    }

    /** Blocks from the smallest numbers that {@link VectorPackedProduct} takes to large ones. */
    private static float[] extremes(int length, SplittableRandom random) {
        float[] values = floats(length, random);
        float least = 1.0f;
        for (int i = 0; i < length; i++) {
            if (i % TILE == 0) {
                least = MAGNITUDES[random.nextInt(MAGNITUDES.length)];
            }
            float size = random.nextInt(8) == 0 ? 0.0f : least * (1 + Math.abs(values[i]));
            values[i] = Math.copySign(size, values[i]);
        }
        return values;
    }

    /** Products of one to six rows with one to three tiles, and what is added to sums. */
    public static void products() {
        Seeded.forAll(
                CASES,
                random -> {
                    for (int rows = 1; rows <= BlockedRows.GROUP; rows++) {
                        product(rows, 1 + random.nextInt(3), random);
                    }
                });
    }

    private static void product(int rows, int blocks, SplittableRandom random) {
        int group = BlockedRows.GROUP * TILE;
        int offset = random.nextInt(9);
        int stride = group + random.nextInt(9);
        float[] tiles = floats(offset + blocks * TILE * TILE, random);
        float[] x = floats(offset + blocks * stride, random);
        float[] expected = new float[group];
        float[] actual = new float[group];
        SCALAR.product(tiles, offset, blocks, x, offset, stride, rows, expected);
        VECTOR.product(tiles, offset, blocks, x, offset, stride, rows, actual);
        assertSame("product of " + rows, rows * TILE, actual, expected);
        float[] heads = floats(2 * TILE, random);
        float[] sums = floats(offset + rows, random);
        float[] scalarSums = floats(offset + rows * TILE, random);
        float[] vectorSums = scalarSums.clone();
        SCALAR.accumulate(expected, heads, sums, offset, rows, scalarSums, offset);
        VECTOR.accumulate(expected, heads, sums, offset, rows, vectorSums, offset);
        assertSame("sums of " + rows, vectorSums, scalarSums);
    }

    /** Normalisation, gate and plain copies of rows. */
    public static void rows() {
        Seeded.forAll(
                CASES,
                random -> {
                    int width = TILE * (1 + random.nextInt(5));
                    int offset = random.nextInt(9);
                    float[] x = floats(offset + 2 * width, random);
                    MemorySegment weights = MemorySegment.ofArray(floats(offset + width, random));
                    BlockedRows expected = new BlockedRows();
                    BlockedRows actual = new BlockedRows();
                    expected.reshape(7, width);
                    actual.reshape(7, width);
                    SCALAR.normalise(x, offset, width, weights, 4L * offset, 1e-5f, expected, 3);
                    VECTOR.normalise(x, offset, width, weights, 4L * offset, 1e-5f, actual, 3);
                    SCALAR.gate(x, offset, width, expected, 4);
                    VECTOR.gate(x, offset, width, actual, 4);
                    SCALAR.copyRow(x, offset, width, expected, 6);
                    VECTOR.copyRow(x, offset, width, actual, 6);
                    assertSame("rows", actual.values(), expected.values());
                    assertSame("sums", actual.sums(), expected.sums());
                });
    }

    /** Softmax over any part of a tile, and merges. */
    public static void softmaxAndMerges() {
        Seeded.forAll(
                CASES,
                random -> {
                    for (int count = 1; count <= TILE; count++) {
                        float[] expected = floats(3 + TILE, random);
                        float[] actual = expected.clone();
                        float maximum = SCALAR.softmax(expected, 3, count);
                        assertThat(VECTOR.softmax(actual, 3, count)).isEqualTo(maximum);
                        assertSame("softmax of " + count, actual, expected);
                    }
                    float[] t = floats(5 + TILE, random);
                    float[] expected = floats(3 + TILE, random);
                    float[] actual = expected.clone();
                    SCALAR.merge(expected, 3, t, 5, 0.3f, 1.7f);
                    VECTOR.merge(actual, 3, t, 5, 0.3f, 1.7f);
                    assertSame("merge", actual, expected);
                });
    }

    /**
     * Tokens of both types and several head dimensions, scattered over a region, as tiles or not.
     */
    public static void tokens() {
        Seeded.forAll(
                CASES,
                random -> {
                    for (KvType type : KvType.values()) {
                        tokens(type, TILE * (1 + random.nextInt(3)), random);
                    }
                });
    }

    private static void tokens(KvType type, int head, SplittableRandom random) {
        byte[] region = new byte[64 * 4 * head];
        random.nextBytes(region);
        for (int i = 1; i < region.length; i += 2) {
            // Clears the top bit of the exponent: no infinities, but subnormal numbers.
            region[i] &= (byte) 0xBF;
        }
        long[] offsets = random.longs(TILE, 0, 64).map(token -> token * 4 * head).toArray();
        int count = 1 + random.nextInt(TILE);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment cache = arena.allocate(region.length, 64);
            cache.copyFrom(MemorySegment.ofArray(region));
            float[] expectedKeys = floats(head * TILE, random);
            float[] expectedValues = expectedKeys.clone();
            float[] keys = expectedKeys.clone();
            float[] values = expectedKeys.clone();
            int[] words = new int[head / 2 * TILE];
            java.util.Arrays.fill(words, -1);
            SCALAR.readTokens(
                    cache, type, offsets, count, head, words, expectedKeys, expectedValues);
            VECTOR.readTokens(cache, type, offsets, count, head, words, keys, values);
            assertSame("keys", keys, expectedKeys);
            assertSame("values", values, expectedValues);
            for (int queries = 1; queries <= Kernels.FEW_QUERIES; queries++) {
                fewQueries(cache, type, offsets, count, head, queries, keys, values, random);
            }
        }
    }

    /** Without tiles, and with the tiles of the same tokens. */
    private static void fewQueries(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int count,
            int head,
            int queries,
            float[] keys,
            float[] values,
            SplittableRandom random) {
        int group = BlockedRows.GROUP * TILE;
        int[] words = new int[head / 2 * TILE];
        java.util.Arrays.fill(words, -1);
        float[] x = floats(3 + head / TILE * group, random);
        float[] tiled = new float[group];
        float[] expected = new float[group];
        float[] actual = new float[group];
        SCALAR.product(keys, 0, head / TILE, x, 3, group, queries, tiled);
        SCALAR.scoreTokens(
                cache, type, offsets, count, head, words, x, 3, group, queries, expected);
        VECTOR.scoreTokens(cache, type, offsets, count, head, words, x, 3, group, queries, actual);
        float[] weights = new float[group];
        for (int q = 0; q < queries; q++) {
            for (int i = q * TILE; i < q * TILE + count; i++) {
                assertThat(expected[i]).as("score %d", i).isEqualTo(tiled[i]);
                assertThat(actual[i]).as("score %d", i).isEqualTo(tiled[i]);
                weights[i] = (float) random.nextDouble();
            }
        }
        int block = random.nextInt(head / TILE);
        SCALAR.product(values, block * TILE * TILE, 1, weights, 0, 0, queries, tiled);
        SCALAR.sumTokens(
                cache, type, offsets, count, head, block * TILE, weights, queries, expected);
        VECTOR.sumTokens(cache, type, offsets, count, head, block * TILE, weights, queries, actual);
        assertSame("sums", queries * TILE, expected, tiled);
        assertSame("sums", queries * TILE, actual, tiled);
    }

    private interface MatrixCase {
        void run(PackedMatrix matrix, MemorySegment weights, SplittableRandom random);
    }

    private static void forEachType(MatrixCase test) {
        Seeded.forAll(
                CASES,
                random -> {
                    for (TensorType type : TensorType.values()) {
                        int outputs = 1 + random.nextInt(70);
                        float scale = SCALES[random.nextInt(SCALES.length)];
                        int block = Math.max(TILE, type.blockElements());
                        int inputs = block * (1 + random.nextInt(3));
                        PackedMatrix matrix = new PackedMatrix(type, outputs, inputs, 64);
                        byte[] tensor = TensorBytes.random(type, outputs, inputs, scale, random);
                        try (Arena arena = Arena.ofConfined()) {
                            MemorySegment weights = arena.allocate(64 + matrix.lengthBytes(), 64);
                            for (int panel = 0; panel < matrix.panels(); panel++) {
                                new MatrixPacker()
                                        .pack(
                                                MemorySegment.ofArray(tensor),
                                                MatrixSource.ofRows(RowOrder.AS_STORED, matrix),
                                                matrix,
                                                weights,
                                                panel);
                            }
                            test.run(matrix, weights, random);
                        }
                    }
                });
    }

    private static float[] floats(int length, SplittableRandom random) {
        float[] values = new float[length];
        for (int i = 0; i < length; i++) {
            values[i] = (float) (random.nextDouble() * 8 - 4);
        }
        return values;
    }

    private static void assertSame(String what, float[] actual, float[] expected) {
        assertSame(what, expected.length, actual, expected);
    }

    private static void assertSame(String what, int length, float[] actual, float[] expected) {
        for (int i = 0; i < length; i++) {
            assertThat(actual[i]).as("%s, element %d", what, i).isEqualTo(expected[i]);
        }
    }
}
