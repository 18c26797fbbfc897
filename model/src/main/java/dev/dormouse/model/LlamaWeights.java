package dev.dormouse.model;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.MatrixSource;
import dev.dormouse.model.kernel.PackedMatrix;
import dev.dormouse.model.kernel.RowOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Which part of which tensor of a file goes where in a rank's weight region.
 *
 * <p>A rank has the rows of its heads in the projections to queries, keys and values, and the
 * columns of its heads in the projection back; likewise for the feed-forward network. It has the
 * embedding and the head for its tokens. Norms, which are small, every rank has whole.
 *
 * <p>Norms are vectors of floats; everything else is a {@link PackedMatrix}. The order is that of
 * the forward pass.
 */
final class LlamaWeights {
    /** One tensor and its place in the region. */
    sealed interface Part {
        TensorInfo tensor();

        /** A matrix, packed. */
        record Matrix(TensorInfo tensor, MatrixSource source, PackedMatrix packed)
                implements Part {}

        /** A vector of floats, copied. */
        record Norm(TensorInfo tensor, long offset) implements Part {}
    }

    private final GgufFile file;
    private final Shard shard;
    private final List<Part> parts = new ArrayList<>();
    private final Set<String> used = new HashSet<>();
    private final LlamaLayout layout;
    private long lengthBytes;

    LlamaWeights(GgufFile file, Shard shard) {
        this.file = file;
        this.shard = shard;
        PackedMatrix embedding = perToken("token_embd");
        List<LlamaLayout.Layer> layers = new ArrayList<>();
        for (int i = 0; i < shard.whole().layers(); i++) {
            layers.add(layer("blk." + i + "."));
        }
        long outputNorm = norm("output_norm", shard.whole().embeddingLength());
        PackedMatrix head =
                file.findTensor("output.weight").isPresent() ? perToken("output") : embedding;
        layout =
                new LlamaLayout(
                        shard.firstToken(),
                        embedding,
                        layers,
                        outputNorm,
                        List.of(head),
                        lengthBytes);
        for (TensorInfo tensor : file.tensors()) {
            if (!used.contains(tensor.name())) {
                throw new ModelException(
                        "open model %s: tensor '%s' is not part of a plain Llama model"
                                .formatted(file.path(), tensor.name()));
            }
        }
    }

    private LlamaLayout.Layer layer(String prefix) {
        int width = shard.whole().embeddingLength();
        int head = shard.whole().headDimension();
        Range queries = new Range(shard.firstHead() * head, shard.own().heads() * head);
        Range keys = new Range(shard.firstKvHead() * head, shard.own().kvHeads() * head);
        Range inner = new Range(shard.firstFeedForward(), shard.own().feedForwardLength());
        int allQueries = shard.whole().heads() * head;
        int allKeys = shard.whole().kvHeads() * head;
        int allInner = shard.whole().feedForwardLength();
        RowOrder rotated = RowOrder.splitHalves(head);
        return new LlamaLayout.Layer(
                norm(prefix + "attn_norm", width),
                List.of(
                        rows(prefix + "attn_q", rotated, queries, allQueries, width),
                        rows(prefix + "attn_k", rotated, keys, allKeys, width),
                        rows(prefix + "attn_v", RowOrder.AS_STORED, keys, allKeys, width)),
                List.of(columns(prefix + "attn_output", width, queries, allQueries)),
                norm(prefix + "ffn_norm", width),
                List.of(
                        rows(prefix + "ffn_gate", RowOrder.AS_STORED, inner, allInner, width),
                        rows(prefix + "ffn_up", RowOrder.AS_STORED, inner, allInner, width)),
                List.of(columns(prefix + "ffn_down", width, inner, allInner)));
    }

    /** What a rank has of a tensor's rows or columns. */
    private record Range(int first, int count) {}

    private PackedMatrix perToken(String name) {
        Range tokens = new Range(shard.firstToken(), shard.tokens());
        ModelConfig whole = shard.whole();
        return rows(
                name, RowOrder.AS_STORED, tokens, whole.vocabularySize(), whole.embeddingLength());
    }

    private PackedMatrix rows(String name, RowOrder order, Range outputs, int all, int inputs) {
        TensorInfo tensor = tensor(name, List.of((long) inputs, (long) all));
        PackedMatrix matrix = place(tensor, outputs.count(), inputs);
        parts.add(
                new Part.Matrix(
                        tensor, MatrixSource.ofRows(order.from(outputs.first()), matrix), matrix));
        return matrix;
    }

    private PackedMatrix columns(String name, int outputs, Range inputs, int all) {
        TensorInfo tensor = tensor(name, List.of((long) all, (long) outputs));
        PackedMatrix matrix = place(tensor, outputs, inputs.count());
        MatrixSource source =
                new MatrixSource(RowOrder.AS_STORED, inputs.first() / BLOCK, all / BLOCK);
        parts.add(new Part.Matrix(tensor, source, matrix));
        return matrix;
    }

    private PackedMatrix place(TensorInfo tensor, int outputs, int inputs) {
        PackedMatrix matrix = new PackedMatrix(tensor.type(), outputs, inputs, lengthBytes);
        lengthBytes += matrix.lengthBytes();
        return matrix;
    }

    private long norm(String name, int elements) {
        TensorInfo tensor = tensor(name, List.of((long) elements));
        if (tensor.type() != TensorType.F32) {
            throw new ModelException(
                    "open model %s: tensor '%s' has type %s, must be F32"
                            .formatted(file.path(), tensor.name(), tensor.type()));
        }
        long offset = lengthBytes;
        parts.add(new Part.Norm(tensor, offset));
        lengthBytes += (long) elements * Float.BYTES;
        return offset;
    }

    private TensorInfo tensor(String name, List<Long> shape) {
        TensorInfo tensor = file.tensor(name + ".weight");
        if (!tensor.shape().equals(shape)) {
            throw new ModelException(
                    "open model %s: tensor '%s' has shape %s, must be %s"
                            .formatted(file.path(), tensor.name(), tensor.shape(), shape));
        }
        used.add(tensor.name());
        return tensor;
    }

    /** Where everything lies. */
    LlamaLayout layout() {
        return layout;
    }

    /** All tensors, in the order of the region, which they fill without a gap. */
    List<Part> parts() {
        return parts;
    }
}
