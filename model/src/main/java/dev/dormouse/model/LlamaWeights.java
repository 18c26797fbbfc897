package dev.dormouse.model;

import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.kernel.PackedMatrix;
import dev.dormouse.model.kernel.RowOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Which tensor of a file goes where in a weight region.
 *
 * <p>Norms and biases are vectors of floats; everything else is a {@link PackedMatrix}. The order
 * is that of the forward pass.
 */
final class LlamaWeights {
    /** One tensor and its place in the region. */
    sealed interface Part {
        TensorInfo tensor();

        /** A matrix, packed. */
        record Matrix(TensorInfo tensor, RowOrder order, PackedMatrix packed) implements Part {}

        /** A vector, widened to floats. */
        record Vector(TensorInfo tensor, long offset) implements Part {}
    }

    private final TensorSource source;
    private final RowOrder rotated;
    private final List<Part> parts = new ArrayList<>();
    private final Set<String> used = new HashSet<>();
    private final LlamaLayout layout;
    private long lengthBytes;

    /**
     * @param rotated how the source orders the rows of queries and keys
     * @throws ModelException if a tensor is missing, of another shape, or not part of the model
     */
    LlamaWeights(TensorSource source, ModelConfig config, RowOrder rotated) {
        this.source = source;
        this.rotated = rotated;
        int width = config.embeddingLength();
        PackedMatrix embedding = matrix("token_embd", config.vocabularySize(), width);
        List<LlamaLayout.Layer> layers = new ArrayList<>();
        for (int i = 0; i < config.layers(); i++) {
            layers.add(layer("blk." + i + ".", config));
        }
        long outputNorm = norm("output_norm", width);
        PackedMatrix head =
                source.findTensor("output.weight").isPresent()
                        ? matrix("output", config.vocabularySize(), width)
                        : embedding;
        layout = new LlamaLayout(embedding, layers, outputNorm, List.of(head), lengthBytes);
        source.findTensor(LlamaConfig.ROPE_DIVISORS).ifPresent(tensor -> used.add(tensor.name()));
        for (TensorInfo tensor : source.tensors()) {
            if (!used.contains(tensor.name())) {
                throw new ModelException(
                        "open model %s: tensor '%s' is not part of a plain %s model"
                                .formatted(source.path(), tensor.name(), config.architecture()));
            }
        }
    }

    private LlamaLayout.Layer layer(String prefix, ModelConfig config) {
        int width = config.embeddingLength();
        int queries = config.heads() * config.headDimension();
        int keys = config.kvHeads() * config.headDimension();
        int inner = config.feedForwardLength();
        return new LlamaLayout.Layer(
                norm(prefix + "attn_norm", width),
                List.of(
                        matrix(prefix + "attn_q", rotated, queries, width),
                        matrix(prefix + "attn_k", rotated, keys, width),
                        matrix(prefix + "attn_v", keys, width)),
                config.architecture().equals("qwen2")
                        ? Optional.of(biases(prefix, queries, keys))
                        : Optional.empty(),
                config.architecture().equals("qwen3")
                        ? Optional.of(headNorms(prefix, config.headDimension()))
                        : Optional.empty(),
                List.of(matrix(prefix + "attn_output", width, queries)),
                norm(prefix + "ffn_norm", width),
                List.of(
                        matrix(prefix + "ffn_gate", inner, width),
                        matrix(prefix + "ffn_up", inner, width)),
                List.of(matrix(prefix + "ffn_down", width, inner)));
    }

    private long biases(String prefix, int queries, int keys) {
        long offset = vector(prefix + "attn_q.bias", queries);
        var _ = vector(prefix + "attn_k.bias", keys);
        var _ = vector(prefix + "attn_v.bias", keys);
        return offset;
    }

    private LlamaLayout.HeadNorms headNorms(String prefix, int head) {
        return new LlamaLayout.HeadNorms(
                norm(prefix + "attn_q_norm", head), norm(prefix + "attn_k_norm", head));
    }

    private PackedMatrix matrix(String name, int outputs, int inputs) {
        return matrix(name, RowOrder.AS_STORED, outputs, inputs);
    }

    private PackedMatrix matrix(String name, RowOrder order, int outputs, int inputs) {
        TensorInfo tensor = tensor(name + ".weight", List.of((long) inputs, (long) outputs));
        PackedMatrix matrix = new PackedMatrix(tensor.type(), outputs, inputs, lengthBytes);
        parts.add(new Part.Matrix(tensor, order, matrix));
        lengthBytes += matrix.lengthBytes();
        return matrix;
    }

    private long norm(String name, int elements) {
        return vector(name + ".weight", elements);
    }

    private long vector(String name, int elements) {
        TensorInfo tensor = tensor(name, List.of((long) elements));
        if (tensor.type().blockElements() != 1) {
            throw new ModelException(
                    "open model %s: tensor '%s' has type %s, must be F32, F16 or BF16"
                            .formatted(source.path(), tensor.name(), tensor.type()));
        }
        long offset = lengthBytes;
        parts.add(new Part.Vector(tensor, offset));
        lengthBytes += (long) elements * Float.BYTES;
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
