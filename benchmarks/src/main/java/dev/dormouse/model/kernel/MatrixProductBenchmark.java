package dev.dormouse.model.kernel;

import dev.dormouse.benchmarks.Timed;
import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.SplittableRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Products of a quantised matrix with one row of activations, as in decoding, with a few, and with
 * a prompt's. Its extents are those of a feed-forward network of the default model.
 */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class MatrixProductBenchmark extends Timed {
    private static final short HUNDREDTH = Float.floatToFloat16(0.01f);

    /** The matrix's format. */
    @Param({"Q4_1", "Q8_0", "Q4_K", "Q6_K"})
    public TensorType type;

    /** Rows of activations. */
    @Param({"1", "8", "128"})
    public int rows;

    /** Of a row; a multiple of 256. */
    @Param("1536")
    public int inputs;

    /** Rows of the matrix. */
    @Param("576")
    public int outputs;

    /** That compute. */
    @Param("1")
    public int threads;

    private final Arena arena = Arena.ofShared();
    private MemorySegment weights;
    private PackedMatrix matrix;
    private ComputeThreads pool;
    private MatrixMultiply multiply;
    private final BlockedRows activations = new BlockedRows();
    private float[] out;

    /** Packs a random matrix, and makes random rows. */
    @Setup
    public void setUp() {
        SplittableRandom random = new SplittableRandom(1);
        matrix = new PackedMatrix(type, outputs, inputs, 0);
        weights = arena.allocate(matrix.lengthBytes(), 64);
        MemorySegment tensor = MemorySegment.ofArray(tensor(random));
        MatrixSource source = MatrixSource.ofRows(RowOrder.AS_STORED, matrix);
        MatrixPacker packer = new MatrixPacker();
        for (int panel = 0; panel < matrix.panels(); panel++) {
            packer.pack(tensor, source, matrix, weights, panel);
        }
        Kernels kernels = Kernels.best();
        activations.reshape(rows, inputs);
        float[] row = new float[inputs];
        for (int r = 0; r < rows; r++) {
            for (int i = 0; i < inputs; i++) {
                row[i] = random.nextFloat() - 0.5f;
            }
            kernels.copyRow(row, 0, inputs, activations, r);
        }
        out = new float[rows * outputs];
        pool = new ComputeThreads(threads);
        multiply = new MatrixMultiply(kernels, pool);
    }

    /** Random quants under ordinary scales: random ones may be no numbers, which take longer. */
    private byte[] tensor(SplittableRandom random) {
        int elements = Math.multiplyExact(outputs, inputs);
        byte[] bytes = new byte[Math.toIntExact(type.bytesFor(elements))];
        random.nextBytes(bytes);
        ByteBuffer blocks = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at < bytes.length; at += type.blockBytes()) {
            if (type == TensorType.Q6_K) {
                blocks.putShort(at + type.blockBytes() - Short.BYTES, HUNDREDTH);
            } else {
                blocks.putShort(at, HUNDREDTH).putShort(at + Short.BYTES, HUNDREDTH);
            }
        }
        return bytes;
    }

    /** Ends the threads. */
    @TearDown
    public void tearDown() {
        pool.close();
        arena.close();
    }

    /** The whole product. */
    @Benchmark
    public float[] product() {
        multiply.run(List.of(matrix), weights, activations, out, 0, outputs);
        return out;
    }
}
