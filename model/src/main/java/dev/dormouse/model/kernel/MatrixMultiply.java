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

    private final Kernels kernels;
    private final ComputeThreads threads;
    private final Scratch[] scratch;
    private final ComputeThreads.Work work = this::panels;

    private List<PackedMatrix> matrices = List.of();
    private MemorySegment weights = MemorySegment.NULL;
    private @Nullable BlockedRows rows;
    private float[] out = new float[0];
    private int stride;

    /** A single row in the form for each type of matrix. */
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
     * @param out receives the outputs of row {@code r} from {@code r * stride} on
     */
    public void run(
            List<PackedMatrix> matrices,
            MemorySegment weights,
            BlockedRows rows,
            float[] out,
            int stride) {
        this.matrices = matrices;
        this.weights = weights;
        this.rows = rows;
        this.out = out;
        this.stride = stride;
        int panels = 0;
        for (PackedMatrix matrix : matrices) {
            panels += matrix.panels();
        }
        if (rows.rows() == 1) {
            prepareRow(rows);
        }
        threads.run(panels, Math.max(1, panels / (threads.count() * SHARES_PER_THREAD)), work);
        this.weights = MemorySegment.NULL;
    }

    private void prepareRow(BlockedRows rows) {
        int width = rows.blocks() * BLOCK;
        @Nullable TensorType last = null;
        for (PackedMatrix matrix : matrices) {
            if (matrix.type() != last) {
                last = matrix.type();
                kernels.prepareRow(last, rows, preparedRow(last, width));
            }
        }
    }

    private float[] preparedRow(TensorType type, int width) {
        float[] row = prepared.get(type);
        if (row == null || row.length < width) {
            row = new float[width];
            prepared.put(type, row);
        }
        return row;
    }

    private void panels(int from, int to, int thread) {
        int first = 0;
        int outputOffset = 0;
        for (PackedMatrix matrix : matrices) {
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
        float[] sums = scratch.zeroedSums(x.rows());
        if (x.rows() == 1) {
            multiplyRow(matrix, panel, x, scratch, sums);
        } else {
            for (int block = 0; block < matrix.blocks(); block++) {
                long offset = matrix.blockOffset(panel, block);
                kernels.heads(matrix, weights, offset, scratch.heads);
                kernels.expand(matrix, weights, offset, scratch.tile);
                multiplyGroups(x, block, scratch, sums);
            }
        }
        int column = panel * PANEL;
        int width = Math.min(PANEL, matrix.outputs() - column);
        for (int r = 0; r < x.rows(); r++) {
            System.arraycopy(sums, r * PANEL, out, r * stride + outputOffset + column, width);
        }
    }

    private void multiplyRow(
            PackedMatrix matrix, int panel, BlockedRows x, Scratch scratch, float[] sums) {
        float[] row = Objects.requireNonNull(prepared.get(matrix.type()));
        for (int block = 0; block < matrix.blocks(); block++) {
            kernels.accumulateRow(
                    matrix,
                    weights,
                    matrix.blockOffset(panel, block),
                    row,
                    block * BLOCK,
                    x.sums()[x.sumIndex(0, block)],
                    scratch,
                    sums);
        }
    }

    private void multiplyGroups(BlockedRows x, int block, Scratch scratch, float[] sums) {
        for (int group = 0; group < x.groups(); group++) {
            int row = group * BlockedRows.GROUP;
            int rowsHere = x.rowsOf(group);
            kernels.product(
                    scratch.tile,
                    0,
                    1,
                    x.values(),
                    x.index(row, block),
                    0,
                    rowsHere,
                    scratch.product);
            kernels.accumulate(
                    scratch.product,
                    scratch.heads,
                    x.sums(),
                    x.sumIndex(row, block),
                    rowsHere,
                    sums,
                    row * PANEL);
        }
    }
}
