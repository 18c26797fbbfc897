package dev.dormouse.model;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.PackedMatrix;
import dev.dormouse.model.kernel.RowOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Which tensor of a file goes where in a weight region.
 *
 * <p>Norms are vectors of floats; everything else is a {@link PackedMatrix}. The order is that of
 * the forward pass.
 */
final class LlamaWeights {
    /** One tensor and its place in the region. */
    sealed interface Part {
        TensorInfo tensor();

        /** A matrix, packed. */
        record Matrix(TensorInfo tensor, RowOrder order, PackedMatrix packed) implements Part {}

        /** A vector of floats, copied. */
        record Norm(TensorInfo tensor, long offset) implements Part {}
    }

    private final GgufFile file;
    private final List<Part> parts = new ArrayList<>();
    private final Set<String> used = new HashSet<>();
    private final LlamaLayout layout;
    private long lengthBytes;

    LlamaWeights(GgufFile file, ModelConfig config) {
        this.file = file;
        int width = config.embeddingLength();
        PackedMatrix embedding = matrix("token_embd", config.vocabularySize(), width);
        List<LlamaLayout.Layer> layers = new ArrayList<>();
        for (int i = 0; i < config.layers(); i++) {
            layers.add(layer("blk." + i + ".", config));
        }
        long outputNorm = norm("output_norm", width);
        PackedMatrix head =
                file.findTensor("output.weight").isPresent()
                        ? matrix("output", config.vocabularySize(), width)
                        : embedding;
        layout = new LlamaLayout(embedding, layers, outputNorm, List.of(head), lengthBytes);
        for (TensorInfo tensor : file.tensors()) {
            if (!used.contains(tensor.name())) {
                throw new ModelException(
                        "open model %s: tensor '%s' is not part of a plain Llama model"
                                .formatted(file.path(), tensor.name()));
            }
        }
    }

    private LlamaLayout.Layer layer(String prefix, ModelConfig config) {
        int width = config.embeddingLength();
        int queries = config.heads() * config.headDimension();
        int keys = config.kvHeads() * config.headDimension();
        int inner = config.feedForwardLength();
        RowOrder rotated = RowOrder.splitHalves(config.headDimension());
        return new LlamaLayout.Layer(
                norm(prefix + "attn_norm", width),
                List.of(
                        matrix(prefix + "attn_q", rotated, queries, width),
                        matrix(prefix + "attn_k", rotated, keys, width),
                        matrix(prefix + "attn_v", keys, width)),
                List.of(matrix(prefix + "attn_output", width, queries)),
                norm(prefix + "ffn_norm", width),
                List.of(
                        matrix(prefix + "ffn_gate", inner, width),
                        matrix(prefix + "ffn_up", inner, width)),
                List.of(matrix(prefix + "ffn_down", width, inner)));
    }

    private PackedMatrix matrix(String name, int outputs, int inputs) {
        return matrix(name, RowOrder.AS_STORED, outputs, inputs);
    }

    private PackedMatrix matrix(String name, RowOrder order, int outputs, int inputs) {
        TensorInfo tensor = tensor(name, List.of((long) inputs, (long) outputs));
        PackedMatrix matrix = new PackedMatrix(tensor.type(), outputs, inputs, lengthBytes);
        parts.add(new Part.Matrix(tensor, order, matrix));
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
