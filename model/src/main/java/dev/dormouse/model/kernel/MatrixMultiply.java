package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;
import static dev.dormouse.model.kernel.PackedMatrix.PANEL;

import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Multiplies rows of activations by matrices, a panel of 32 outputs at a time.
 *
 * <p>A panel's weights are read once for all rows. Every output is a sum over the blocks in their
 * order, whoever computes it.
 */
public final class MatrixMultiply {
    /** Panels handed to a thread at once, as a share of all: small, since threads may be slow. */
    private static final int SHARES_PER_THREAD = 8;

    /** As many rows do not pay for a tile, if the matrix is quantised. */
    private static final int MOST_PACKED_ROWS = 2;

    private final Kernels kernels;
    private final ComputeThreads threads;
    private final Scratch[] scratch;
    private final ComputeThreads.Work work = this::panels;

    private List<PackedMatrix> matrices = List.of();
    private MemorySegment weights = MemorySegment.NULL;
    private @Nullable BlockedRows rows;
    private float[] out = new float[0];
    private int outFrom;
    private int stride;
    private boolean adding;

    /** Rows that need no tile, in the form for each type of matrix. */
    private final Map<TensorType, float[]> prepared = new EnumMap<>(TensorType.class);

    /** Multiplies on {@code threads}, which must not be in use meanwhile. */
    public MatrixMultiply(Kernels kernels, ComputeThreads threads) {
        this.kernels = kernels;
        this.threads = threads;
        scratch = new Scratch[threads.count()];
        for (int i = 0; i < scratch.length; i++) {
            scratch[i] = new Scratch();
        }
    }

    /**
     * Multiplies the rows by each matrix.
     *
     * @param matrices of the same inputs; their outputs lie side by side in {@code out}
     * @param out receives the outputs of row {@code r} from {@code from + r * stride} on
     */
    public void run(
            List<PackedMatrix> matrices,
            MemorySegment weights,
            BlockedRows rows,
            float[] out,
            int from,
            int stride) {
        adding = false;
        multiply(matrices, weights, rows, out, from, stride);
    }

    /**
     * Goes on with sums that earlier inputs have begun: what comes out is, bit for bit, what one
     * matrix of the earlier inputs and these would have given.
     *
     * @param out has the sums of row {@code r} from {@code r * stride} on
     */
    public void add(
            List<PackedMatrix> matrices,
            MemorySegment weights,
            BlockedRows rows,
            float[] out,
            int stride) {
        adding = true;
        multiply(matrices, weights, rows, out, 0, stride);
    }

    private void multiply(
            List<PackedMatrix> matrices,
            MemorySegment weights,
            BlockedRows rows,
            float[] out,
            int from,
            int stride) {
        this.matrices = matrices;
        this.weights = weights;
        this.rows = rows;
        this.out = out;
        this.outFrom = from;
        this.stride = stride;
        int panels = 0;
        // By index, here and below: an iterator for each product would be garbage.
        for (int i = 0; i < matrices.size(); i++) {
            panels += matrices.get(i).panels();
        }
        prepareRows(rows);
        try {
            threads.run(panels, Math.max(1, panels / (threads.count() * SHARES_PER_THREAD)), work);
        } finally {
            this.weights = MemorySegment.NULL;
        }
    }

    private static boolean isPacked(PackedMatrix matrix, BlockedRows rows) {
        return matrix.isQuantised() && rows.rows() <= MOST_PACKED_ROWS;
    }

    private void prepareRows(BlockedRows rows) {
        int length = rows.rows() * rows.blocks() * BLOCK;
        @Nullable TensorType last = null;
        for (int i = 0; i < matrices.size(); i++) {
            PackedMatrix matrix = matrices.get(i);
            if (isPacked(matrix, rows) && matrix.type() != last) {
                last = matrix.type();
                float[] buffer = prepared.get(last);
                if (buffer == null || buffer.length < length) {
                    buffer = new float[length];
                    prepared.put(last, buffer);
                }
                kernels.prepareRows(last, rows, 0, buffer);
            }
        }
    }

    private void panels(int from, int to, int thread) {
        int first = 0;
        int outputOffset = outFrom;
        for (int i = 0; i < matrices.size(); i++) {
            PackedMatrix matrix = matrices.get(i);
            int last = first + matrix.panels();
            for (int panel = Math.max(from, first); panel < Math.min(to, last); panel++) {
                multiply(matrix, panel - first, outputOffset, scratch[thread]);
            }
            first = last;
            outputOffset += matrix.outputs();
        }
    }

    private void multiply(PackedMatrix matrix, int panel, int outputOffset, Scratch scratch) {
        BlockedRows x = Objects.requireNonNull(rows);
        float[] acc = scratch.zeroedSums(x.rows());
        int column = outputOffset + panel * PANEL;
        int width = Math.min(PANEL, matrix.outputs() - panel * PANEL);
        if (adding) {
            for (int r = 0; r < x.rows(); r++) {
                System.arraycopy(out, r * stride + column, acc, r * PANEL, width);
            }
        }
        boolean packed = isPacked(matrix, x);
        for (int block = 0; block < matrix.blocks(); block++) {
            long offset = matrix.blockOffset(panel, block);
            kernels.heads(matrix, weights, offset, scratch.heads);
            if (packed) {
                multiplyPacked(matrix, offset, x, block, scratch, acc);
            } else {
                kernels.expand(matrix, weights, offset, scratch.tile);
                multiplyTile(x, block, scratch, acc);
            }
        }
        for (int r = 0; r < x.rows(); r++) {
            System.arraycopy(acc, r * PANEL, out, r * stride + column, width);
        }
    }

    private void multiplyTile(BlockedRows x, int block, Scratch scratch, float[] acc) {
        int count;
        for (int row = 0; row < x.rows(); row += count) {
            count = rowsAtOnce(x.rows() - row);
            int at = x.index(row, block);
            kernels.product(scratch.tile, 0, 1, x.values(), at, 0, count, scratch.product);
            accumulate(x, row, count, block, scratch, acc);
        }
    }

    /** Six, which is the most; but twice four rather than six and one or two, which take longer. */
    private static int rowsAtOnce(int left) {
        return left == BlockedRows.GROUP + 1 || left == BlockedRows.GROUP + 2
                ? 4
                : Math.min(BlockedRows.GROUP, left);
    }

    private void multiplyPacked(
            PackedMatrix matrix,
            long offset,
            BlockedRows x,
            int block,
            Scratch scratch,
            float[] acc) {
        float[] prepared = Objects.requireNonNull(this.prepared.get(matrix.type()));
        int from = block * BLOCK;
        kernels.packedProduct(matrix, weights, offset, prepared, from, x.rows(), scratch.product);
        accumulate(x, 0, x.rows(), block, scratch, acc);
    }

    private void accumulate(
            BlockedRows x, int row, int count, int block, Scratch scratch, float[] acc) {
        int sum = x.sumIndex(row, block);
        kernels.accumulate(scratch.product, scratch.heads, x.sums(), sum, count, acc, row * PANEL);
    }
}
