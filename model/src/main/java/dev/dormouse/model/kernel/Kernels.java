package dev.dormouse.model.kernel;

import dev.dormouse.model.KvType;
import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;

/**
 * The inner loops of the forward pass.
 *
 * <p>All implementations give the same bits as {@link ScalarKernels}, which defines them. None has
 * state; any number of threads may call. Ranges are the caller's duty; a wrong one throws {@link
 * IndexOutOfBoundsException}.
 *
 * <p>A <em>tile</em> is 32 inputs by 32 outputs, {@code [input][output]}. <em>Heads</em> are 32
 * scales, then 32 minima: a weight is {@code scale * quant + minimum}.
 */
public interface Kernels {
    /** Inputs, and outputs, of a tile. */
    int TILE = 32;

    /** As many queries do not pay for tiles of K and V. */
    int FEW_QUERIES = 4;

    /**
     * The fastest implementation here: vectors {@linkplain #hasVectors() where the process has
     * them}. Both need a processor with fused multiply-add.
     */
    static Kernels best() {
        return hasVectors() ? new VectorKernels() : new ScalarKernels();
    }

    /**
     * Whether the process has the module {@code jdk.incubator.vector}, from its start ({@code
     * --add-modules}) or by now.
     */
    static boolean hasVectors() {
        try {
            Class.forName(
                    "jdk.incubator.vector.Vector", false, ClassLoader.getPlatformClassLoader());
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    /** Names the implementation and its vector width, for a log line. */
    String name();

    /**
     * Reads the scales and minima of a block.
     *
     * @param blockOffset from {@link PackedMatrix#blockOffset}
     * @param heads receives 64 floats
     */
    void heads(PackedMatrix matrix, MemorySegment weights, long blockOffset, float[] heads);

    /**
     * Writes the quants of a block as a tile of floats.
     *
     * @param tile receives 1024 floats
     */
    void expand(PackedMatrix matrix, MemorySegment weights, long blockOffset, float[] tile);

    /**
     * Multiplies up to six rows by tiles: {@code out[r][n]} is the sum over {@code k} of {@code
     * x[r][k] * tile[k][n]}, a chain of fused multiply-adds from 0 in the order of {@code k}.
     *
     * @param tiles one behind the other from {@code tileOffset}
     * @param blocks how many, that is how many times 32 inputs
     * @param x six rows of 32, one behind the other from {@code xOffset}, for the first tile
     * @param xStride from there to the six rows for the next tile
     * @param rows how many of the six matter
     * @param out receives {@code [row][32]}; up to six rows are overwritten
     */
    void product(
            float[] tiles,
            int tileOffset,
            int blocks,
            float[] x,
            int xOffset,
            int xStride,
            int rows,
            float[] out);

    /**
     * Adds products of quants to sums of weights: {@code acc = fma(minimum, sum of x, fma(scale,
     * product, acc))}.
     *
     * @param sums the rows' sums of x, from {@code sumOffset}
     * @param acc {@code rows * 32} floats from {@code accOffset}
     */
    void accumulate(
            float[] product,
            float[] heads,
            float[] sums,
            int sumOffset,
            int rows,
            float[] acc,
            int accOffset);

    /**
     * Brings the last rows into the form that {@link #packedProduct} wants.
     *
     * @param type of the matrix, a quantised one
     * @param first of the rows
     * @param prepared receives the elements, in their order, row by row
     */
    void prepareRows(TensorType type, BlockedRows rows, int first, float[] prepared);

    /**
     * Does {@link #expand} and {@link #product} at once, for one row or two.
     *
     * @param matrix a quantised one
     * @param prepared by {@link #prepareRows}
     * @param from the first of the block's 32 elements in the first row
     * @param rows 1 or 2
     * @param out receives {@code [row][32]}
     */
    void packedProduct(
            PackedMatrix matrix,
            MemorySegment weights,
            long blockOffset,
            float[] prepared,
            int from,
            int rows,
            float[] out);

    /** {@code y = fma(y, a, t * b)} over 32 floats. */
    void merge(float[] y, int yOffset, float[] t, int tOffset, float a, float b);

    /** Puts a row into blocks and sums them. */
    void copyRow(float[] x, int xOffset, int width, BlockedRows out, int row);

    /**
     * Root mean square normalisation of a row, times a weight vector of floats.
     *
     * @param weightOffset of the vector in {@code weights}
     */
    void normalise(
            float[] x,
            int xOffset,
            int width,
            MemorySegment weights,
            long weightOffset,
            float epsilon,
            BlockedRows out,
            int row);

    /** {@code silu(gate) * up}; {@code width} gates, then as many ups, from {@code offset}. */
    void gate(float[] gateUp, int offset, int width, BlockedRows out, int row);

    /**
     * Reads the K and V of up to 32 tokens as tiles; what is past {@code tokens} is zero.
     *
     * @param cache a layer's region
     * @param offsets where each token's K, then V, starts in it
     * @param headDimension elements of K, and of V; a multiple of 32
     * @param words scratch of {@code 32 * headDimension / 2}
     * @param keys receives tiles {@code [dimension][token]}, one per 32 dimensions
     * @param values receives tiles {@code [token][dimension]}, one per 32 dimensions
     */
    void readTokens(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int[] words,
            float[] keys,
            float[] values);

    /**
     * Scores up to {@link #FEW_QUERIES} queries: as {@link #readTokens} and then {@link #product}
     * with the tiles of K, but without making tiles.
     *
     * @param words scratch of {@code 32 * headDimension / 2}
     * @param x as for {@link #product}, with the queries as its rows
     * @param scores receives {@code [query][32]}; what is past {@code tokens} is of no meaning, and
     *     {@link #FEW_QUERIES} rows may be overwritten
     */
    void scoreTokens(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int[] words,
            float[] x,
            int xOffset,
            int xStride,
            int queries,
            float[] scores);

    /**
     * Sums V, each token's times its weight, for up to {@link #FEW_QUERIES} queries: as {@link
     * #product} with a tile of V.
     *
     * @param dimension the first of 32 dimensions
     * @param weights {@code [query][32]}
     * @param out receives {@code [query][32]}; {@link #FEW_QUERIES} rows may be overwritten
     */
    void sumTokens(
            MemorySegment cache,
            KvType type,
            long[] offsets,
            int tokens,
            int headDimension,
            int dimension,
            float[] weights,
            int queries,
            float[] out);

    /**
     * Turns a row of 32 scores into {@code exp(score - maximum)}, zero from {@code count} on.
     *
     * @param count at least 1
     * @return the maximum
     */
    float softmax(float[] scores, int offset, int count);
}
