package dev.dormouse.model;

import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.MatrixPacker;
import dev.dormouse.model.kernel.PackedMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Fills a rank's weight region from the file, in pieces that the compute threads share.
 *
 * <p>Each piece has a CRC-32C of its packed bytes. The first load takes them, every later one must
 * find them again.
 */
final class WeightLoader {
    /** Small enough that a piece is still in the cache when its checksum is computed. */
    private static final long PIECE_BYTES = 256 << 10;

    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfShort HALF =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private record Piece(LlamaWeights.Part part, int firstPanel, int panels) {}

    private final TensorSource source;
    private final List<Piece> pieces = new ArrayList<>();
    private int @Nullable [] expected;

    WeightLoader(TensorSource source, LlamaWeights weights) {
        this.source = source;
        for (LlamaWeights.Part part : weights.parts()) {
            switch (part) {
                case LlamaWeights.Part.Vector vector -> pieces.add(new Piece(vector, 0, 0));
                case LlamaWeights.Part.Matrix matrix -> split(part, matrix.packed());
            }
        }
    }

    private void split(LlamaWeights.Part part, PackedMatrix matrix) {
        long panelBytes = (long) matrix.blocks() * matrix.blockBytes();
        int panels = (int) Math.max(1, PIECE_BYTES / panelBytes);
        for (int first = 0; first < matrix.panels(); first += panels) {
            pieces.add(new Piece(part, first, Math.min(panels, matrix.panels() - first)));
        }
    }

    void load(MemorySegment target, ComputeThreads threads) {
        int[] found = new int[pieces.size()];
        MatrixPacker[] packers = new MatrixPacker[threads.count()];
        Arrays.setAll(packers, i -> new MatrixPacker());
        try {
            threads.run(
                    found.length,
                    1,
                    (from, to, thread) -> {
                        for (int i = from; i < to; i++) {
                            found[i] = loadPiece(pieces.get(i), target, packers[thread]);
                        }
                    });
        } catch (InternalError e) {
            // What the JVM makes of a page fault beyond the end of a mapped file.
            throw new ModelException(
                    "load weights: " + source.path() + " cannot be read; was it shortened?", e);
        }
        // Or its pages would count as this process's memory until somebody else needs them.
        source.tensors().forEach(tensor -> source.data(tensor).unload());
        if (expected == null) {
            expected = found;
            return;
        }
        for (int i = 0; i < found.length; i++) {
            if (found[i] != expected[i]) {
                throw new ModelException(
                        "load weights: tensor '%s' of %s has changed since it was loaded first (CRC-32C %08x, was %08x); restart with a file that stays"
                                .formatted(
                                        pieces.get(i).part().tensor().name(),
                                        source.path(),
                                        found[i],
                                        expected[i]));
            }
        }
    }

    private int loadPiece(Piece piece, MemorySegment target, MatrixPacker packer) {
        MemorySegment data = source.data(piece.part.tensor());
        MemorySegment written =
                switch (piece.part) {
                    case LlamaWeights.Part.Vector(var tensor, var first, var count, var offset) -> {
                        MemorySegment floats = target.asSlice(offset, (long) count * Float.BYTES);
                        yield widen(tensor.type(), data, first, floats);
                    }
                    case LlamaWeights.Part.Matrix(var _, var origin, var matrix) -> {
                        int end = piece.firstPanel + piece.panels;
                        for (int panel = piece.firstPanel; panel < end; panel++) {
                            packer.pack(data, origin, matrix, target, panel);
                        }
                        long first = matrix.blockOffset(piece.firstPanel, 0);
                        yield target.asSlice(first, matrix.blockOffset(end, 0) - first);
                    }
                };
        CRC32C checksum = new CRC32C();
        checksum.update(written.asByteBuffer());
        return (int) checksum.getValue();
    }

    private static MemorySegment widen(
            TensorType type, MemorySegment data, int first, MemorySegment floats) {
        for (long i = 0; i < floats.byteSize() / Float.BYTES; i++) {
            long from = first + i;
            float value =
                    switch (type) {
                        case F32 -> data.get(FLOAT, Float.BYTES * from);
                        case F16 -> Float.float16ToFloat(data.get(HALF, Short.BYTES * from));
                        case BF16 -> Float.intBitsToFloat(data.get(HALF, Short.BYTES * from) << 16);
                        case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K ->
                                throw new IllegalArgumentException("load vector: of type " + type);
                    };
            floats.set(FLOAT, Float.BYTES * i, value);
        }
        return floats;
    }
}
