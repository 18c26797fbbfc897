package dev.dormouse.model;

import static dev.dormouse.model.kernel.PackedMatrix.BLOCK;

import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.kernel.MatrixSource;
import dev.dormouse.model.kernel.PackedMatrix;
import dev.dormouse.model.kernel.RowOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Which part of which tensor of a file goes where in a rank's weight region.
 *
 * <p>A rank has the rows of its heads in the projections to queries, keys and values, and the
 * columns of its heads in the projection back; likewise for the feed-forward network. It has the
 * embedding and the head for its tokens. Norms, which are small, every rank has whole.
 *
 * <p>Norms and biases are vectors of floats; everything else is a {@link PackedMatrix}. The order
 * is that of the forward pass.
 */
final class LlamaWeights {
    /** One tensor and its place in the region. */
    sealed interface Part {
        TensorInfo tensor();

        /** A matrix, packed. */
        record Matrix(TensorInfo tensor, MatrixSource source, PackedMatrix packed)
                implements Part {}

        /** {@code count} elements of a vector, widened to floats. */
        record Vector(TensorInfo tensor, int first, int count, long offset) implements Part {}
    }

    private final TensorSource source;
    private final Shard shard;
    private final RowOrder rotated;
    private final List<Part> parts = new ArrayList<>();
    private final Set<String> used = new HashSet<>();
    private final LlamaLayout layout;
    private long lengthBytes;

    /**
     * Lays out a rank's weights.
     *
     * @param rotated how the source orders the rows of queries and keys
     * @throws ModelException if a tensor is missing, of another shape, or not part of the model
     */
    LlamaWeights(TensorSource source, Shard shard, RowOrder rotated) {
        this.source = source;
        this.shard = shard;
        this.rotated = rotated;
        ModelConfig config = shard.whole();
        PackedMatrix embedding = perToken("token_embd");
        List<LlamaLayout.Layer> layers = new ArrayList<>();
        for (int i = 0; i < config.layers(); i++) {
            layers.add(layer("blk." + i + "."));
        }
        long outputNorm = norm("output_norm", config.embeddingLength());
        PackedMatrix head =
                source.findTensor("output.weight").isPresent() ? perToken("output") : embedding;
        layout =
                new LlamaLayout(
                        shard.firstToken(),
                        embedding,
                        layers,
                        outputNorm,
                        List.of(head),
                        lengthBytes);
        source.findTensor(LlamaConfig.ROPE_DIVISORS).ifPresent(tensor -> used.add(tensor.name()));
        for (TensorInfo tensor : source.tensors()) {
            if (!used.contains(tensor.name())) {
                throw new ModelException(
                        "open model %s: tensor '%s' is not part of a plain %s model"
                                .formatted(source.path(), tensor.name(), config.architecture()));
            }
        }
    }

    /** What a rank has of a tensor's {@code all} rows or columns. */
    private record Range(int first, int count, int all) {}

    private LlamaLayout.Layer layer(String prefix) {
        ModelConfig whole = shard.whole();
        ModelConfig own = shard.own();
        int width = whole.embeddingLength();
        int head = whole.headDimension();
        Range queries =
                new Range(shard.firstHead() * head, own.heads() * head, whole.heads() * head);
        Range keys =
                new Range(shard.firstKvHead() * head, own.kvHeads() * head, whole.kvHeads() * head);
        Range inner =
                new Range(
                        shard.firstFeedForward(),
                        own.feedForwardLength(),
                        whole.feedForwardLength());
        return new LlamaLayout.Layer(
                norm(prefix + "attn_norm", width),
                List.of(
                        rows(prefix + "attn_q", rotated, queries, width),
                        rows(prefix + "attn_k", rotated, keys, width),
                        rows(prefix + "attn_v", RowOrder.AS_STORED, keys, width)),
                whole.architecture().equals("qwen2")
                        ? Optional.of(biases(prefix, queries, keys))
                        : Optional.empty(),
                whole.architecture().equals("qwen3")
                        ? Optional.of(headNorms(prefix, head))
                        : Optional.empty(),
                List.of(columns(prefix + "attn_output", width, queries)),
                norm(prefix + "ffn_norm", width),
                List.of(
                        rows(prefix + "ffn_gate", RowOrder.AS_STORED, inner, width),
                        rows(prefix + "ffn_up", RowOrder.AS_STORED, inner, width)),
                List.of(columns(prefix + "ffn_down", width, inner)));
    }

    private long biases(String prefix, Range queries, Range keys) {
        long offset = vector(prefix + "attn_q.bias", queries);
        var _ = vector(prefix + "attn_k.bias", keys);
        var _ = vector(prefix + "attn_v.bias", keys);
        return offset;
    }

    private LlamaLayout.HeadNorms headNorms(String prefix, int head) {
        return new LlamaLayout.HeadNorms(
                norm(prefix + "attn_q_norm", head), norm(prefix + "attn_k_norm", head));
    }

    private PackedMatrix perToken(String name) {
        ModelConfig whole = shard.whole();
        Range tokens = new Range(shard.firstToken(), shard.tokens(), whole.vocabularySize());
        return rows(name, RowOrder.AS_STORED, tokens, whole.embeddingLength());
    }

    private PackedMatrix rows(String name, RowOrder order, Range outputs, int inputs) {
        TensorInfo tensor = tensor(name + ".weight", List.of((long) inputs, (long) outputs.all()));
        PackedMatrix matrix = place(tensor, outputs.count(), inputs);
        parts.add(
                new Part.Matrix(
                        tensor, MatrixSource.ofRows(order.from(outputs.first()), matrix), matrix));
        return matrix;
    }

    private PackedMatrix columns(String name, int outputs, Range inputs) {
        TensorInfo tensor = tensor(name + ".weight", List.of((long) inputs.all(), (long) outputs));
        PackedMatrix matrix = place(tensor, outputs, inputs.count());
        MatrixSource columns =
                new MatrixSource(RowOrder.AS_STORED, inputs.first() / BLOCK, inputs.all() / BLOCK);
        parts.add(new Part.Matrix(tensor, columns, matrix));
        return matrix;
    }

    private PackedMatrix place(TensorInfo tensor, int outputs, int inputs) {
        PackedMatrix matrix = new PackedMatrix(tensor.type(), outputs, inputs, lengthBytes);
        lengthBytes += matrix.lengthBytes();
        return matrix;
    }

    private long norm(String name, int elements) {
        return vector(name + ".weight", new Range(0, elements, elements));
    }

    private long vector(String name, Range elements) {
        TensorInfo tensor = tensor(name, List.of((long) elements.all()));
        if (tensor.type().blockElements() != 1) {
            throw new ModelException(
                    "open model %s: tensor '%s' has type %s, must be F32, F16 or BF16"
                            .formatted(source.path(), tensor.name(), tensor.type()));
        }
        long offset = lengthBytes;
        parts.add(new Part.Vector(tensor, elements.first(), elements.count(), offset));
        lengthBytes += (long) elements.count() * Float.BYTES;
        return offset;
    }

    private TensorInfo tensor(String name, List<Long> shape) {
        TensorInfo tensor = source.tensor(name);
        if (!tensor.shape().equals(shape)) {
            throw new ModelException(
                    "open model %s: tensor '%s' has shape %s, must be %s"
                            .formatted(source.path(), tensor.name(), tensor.shape(), shape));
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
