package dev.dormouse.model.kernel;

import static dev.dormouse.model.kernel.PackedMatrix.PANEL;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Brings the rows of a GGUF tensor into the order of a {@link PackedMatrix}.
 *
 * <p>A panel's rows are copied to the heap, rewritten where their type asks for it, transposed
 * there by words, and copied out; all but the first and the last pass in the cache. One thread at a
 * time may use a packer.
 */
public final class MatrixPacker {
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle HALF =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

    private byte[] stored = new byte[0];
    private byte[] rows = new byte[0];
    private byte[] packed = new byte[0];

    /**
     * Packs one panel.
     *
     * @param tensor the tensor's rows as they are in the file
     * @param source which of them, and which part of them, the matrix is
     * @param weights the weight region
     */
    public void pack(
            MemorySegment tensor,
            MatrixSource source,
            PackedMatrix matrix,
            MemorySegment weights,
            int panel) {
        int rowBytes = Math.multiplyExact(matrix.blocks(), matrix.outputBlockBytes());
        int firstOutput = panel * PANEL;
        int outputs = Math.min(PANEL, matrix.outputs() - firstOutput);
        int panelBytes = Math.multiplyExact(PANEL, rowBytes);
        if (rows.length < panelBytes) {
            rows = new byte[panelBytes];
            packed = new byte[panelBytes];
        }
        for (int n = 0; n < outputs; n++) {
            readRow(tensor, source, firstOutput + n, matrix, n * rowBytes);
        }
        Arrays.fill(rows, outputs * rowBytes, panelBytes, (byte) 0);
        for (int block = 0; block < matrix.blocks(); block++) {
            packBlock(matrix, block, rowBytes);
        }
        long target = matrix.blockOffset(panel, 0);
        MemorySegment.copy(packed, 0, weights, ValueLayout.JAVA_BYTE, target, panelBytes);
    }

    private void readRow(
            MemorySegment tensor, MatrixSource source, int output, PackedMatrix matrix, int to) {
        int inputs = Math.multiplyExact(source.rowBlocks(), PackedMatrix.BLOCK);
        int storedBytes = Math.toIntExact(matrix.type().bytesFor(inputs));
        long row = (long) source.rows().row(output) * storedBytes;
        int outputBlockBytes = matrix.outputBlockBytes();
        if (!BlockRewriter.rewrites(matrix.type())) {
            long from = row + (long) source.firstBlock() * outputBlockBytes;
            int length = matrix.blocks() * outputBlockBytes;
            MemorySegment.copy(tensor, ValueLayout.JAVA_BYTE, from, rows, to, length);
            return;
        }
        if (stored.length < storedBytes) {
            stored = new byte[storedBytes];
        }
        MemorySegment.copy(tensor, ValueLayout.JAVA_BYTE, row, stored, 0, storedBytes);
        for (int block = 0; block < matrix.blocks(); block++) {
            int at = to + block * outputBlockBytes;
            BlockRewriter.rewrite(matrix.type(), stored, source.firstBlock() + block, rows, at);
        }
    }

    private void packBlock(PackedMatrix matrix, int block, int rowBytes) {
        int from = block * matrix.outputBlockBytes();
        int to = block * matrix.blockBytes();
        switch (matrix.headBytes()) {
            case 0 -> {}
            case 2 -> packHalves(from, to, rowBytes);
            case 4 -> packWords(from, to, rowBytes);
            default -> {
                packWords(from, to, rowBytes);
                packWords(from + Float.BYTES, to + PANEL * Float.BYTES, rowBytes);
            }
        }
        from += matrix.headBytes();
        to += PANEL * matrix.headBytes();
        for (int j = 0; j < matrix.words(); j++) {
            if (matrix.isBytes()) {
                packReversedWords(from, to, rowBytes);
            } else {
                packWords(from, to, rowBytes);
            }
            from += Integer.BYTES;
            to += PANEL * Integer.BYTES;
        }
    }

    private void packHalves(int from, int to, int rowBytes) {
        for (int n = 0; n < PANEL; n++) {
            HALF.set(packed, to + 2 * n, (short) HALF.get(rows, from + n * rowBytes));
        }
    }

    private void packWords(int from, int to, int rowBytes) {
        for (int n = 0; n < PANEL; n++) {
            WORD.set(packed, to + 4 * n, (int) WORD.get(rows, from + n * rowBytes));
        }
    }

    private void packReversedWords(int from, int to, int rowBytes) {
        for (int n = 0; n < PANEL; n++) {
            int word = (int) WORD.get(rows, from + n * rowBytes);
            WORD.set(packed, to + 4 * n, Integer.reverseBytes(word));
        }
    }
}
