package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;

import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Brings the rows of a GGUF tensor into the order of a {@link PackedMatrix}. */
public final class MatrixPacker {
    private static final ValueLayout.OfInt WORD =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt REVERSED_WORD =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfShort HALF =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private MatrixPacker() {}

    /**
     * Packs one panel.
     *
     * @param tensor the tensor's rows as they are in the file
     * @param weights the weight region
     */
    public static void pack(
            MemorySegment tensor, PackedMatrix matrix, MemorySegment weights, int panel) {
        int firstOutput = panel * PANEL;
        int outputs = Math.min(PANEL, matrix.outputs() - firstOutput);
        int blocks = matrix.blocks();
        long rowBytes = (long) blocks * matrix.outputBlockBytes();
        if (outputs < PANEL) {
            weights.asSlice(matrix.blockOffset(panel, 0), (long) blocks * matrix.blockBytes())
                    .fill((byte) 0);
        }
        MemorySegment rows = tensor.asSlice(firstOutput * rowBytes, outputs * rowBytes);
        for (int block = 0; block < blocks; block++) {
            long source = (long) block * matrix.outputBlockBytes();
            long target = matrix.blockOffset(panel, block);
            packHeads(rows, source, rowBytes, outputs, matrix.headBytes(), weights, target);
            packWords(
                    rows,
                    source + matrix.headBytes(),
                    rowBytes,
                    outputs,
                    matrix,
                    weights,
                    matrix.wordOffset(target));
        }
    }

    private static void packHeads(
            MemorySegment rows,
            long source,
            long rowBytes,
            int outputs,
            int headBytes,
            MemorySegment weights,
            long target) {
        for (int n = 0; n < outputs; n++) {
            long from = source + n * rowBytes;
            if (headBytes == Integer.BYTES) {
                weights.set(WORD, target + 4L * n, rows.get(WORD, from));
            } else if (headBytes == Short.BYTES) {
                weights.set(HALF, target + 2L * n, rows.get(HALF, from));
            }
        }
    }

    private static void packWords(
            MemorySegment rows,
            long source,
            long rowBytes,
            int outputs,
            PackedMatrix matrix,
            MemorySegment weights,
            long target) {
        ValueLayout.OfInt order = matrix.type() == TensorType.Q8_0 ? REVERSED_WORD : WORD;
        for (int n = 0; n < outputs; n++) {
            long from = source + n * rowBytes;
            long to = target + 4L * n;
            for (int j = 0; j < matrix.words(); j++) {
                weights.set(order, to + 4L * PANEL * j, rows.get(WORD, from + 4L * j));
            }
        }
    }
}
