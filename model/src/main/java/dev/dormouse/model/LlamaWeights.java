package dev.dormouse.model;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.PackedMatrix;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The layout of a weight region: which tensor of the file goes where.
 *
 * <p>Norms are vectors of floats; everything else is a {@link PackedMatrix}. The order is that of
 * the forward pass. All offsets are multiples of 64.
 */
final class LlamaWeights {
    /** One tensor and its place in the region. */
    sealed interface Part {
        TensorInfo tensor();

        /** A matrix, packed. */
        record Matrix(TensorInfo tensor, PackedMatrix matrix) implements Part {}

        /** A vector of floats, copied. */
        record Norm(TensorInfo tensor, long offset) implements Part {}
    }

    /**
     * The weights of a transformer layer; norms by their offset.
     *
     * @param queryKeyValue three matrices
     * @param output the projection after attention
     * @param gateUp two matrices
     */
    record Layer(
            long attentionNorm,
            List<PackedMatrix> queryKeyValue,
            List<PackedMatrix> output,
            long feedForwardNorm,
            List<PackedMatrix> gateUp,
            List<PackedMatrix> down) {}

    private final GgufFile file;
    private final List<Part> parts = new ArrayList<>();
    private final Set<String> used = new HashSet<>();
    private final List<Layer> layers = new ArrayList<>();
    private final PackedMatrix embedding;
    private final long outputNorm;
    private final List<PackedMatrix> head;
    private long lengthBytes;

    LlamaWeights(GgufFile file, ModelConfig config) {
        this.file = file;
        int width = config.embeddingLength();
        embedding = matrix("token_embd", config.vocabularySize(), width);
        for (int i = 0; i < config.layers(); i++) {
            layers.add(layer("blk." + i + ".", config));
        }
        outputNorm = norm("output_norm", width);
        head =
                List.of(
                        file.findTensor("output.weight").isPresent()
                                ? matrix("output", config.vocabularySize(), width)
                                : embedding);
        for (TensorInfo tensor : file.tensors()) {
            if (!used.contains(tensor.name())) {
                throw new ModelException(
                        "open model %s: tensor '%s' is not part of a plain Llama model"
                                .formatted(file.path(), tensor.name()));
            }
        }
    }

    private Layer layer(String prefix, ModelConfig config) {
        int width = config.embeddingLength();
        int queries = config.heads() * config.headDimension();
        int keys = config.kvHeads() * config.headDimension();
        int inner = config.feedForwardLength();
        return new Layer(
                norm(prefix + "attn_norm", width),
                List.of(
                        matrix(prefix + "attn_q", queries, width),
                        matrix(prefix + "attn_k", keys, width),
                        matrix(prefix + "attn_v", keys, width)),
                List.of(matrix(prefix + "attn_output", width, queries)),
                norm(prefix + "ffn_norm", width),
                List.of(
                        matrix(prefix + "ffn_gate", inner, width),
                        matrix(prefix + "ffn_up", inner, width)),
                List.of(matrix(prefix + "ffn_down", width, inner)));
    }

    private PackedMatrix matrix(String name, int outputs, int inputs) {
        TensorInfo tensor = tensor(name, List.of((long) inputs, (long) outputs));
        PackedMatrix matrix = new PackedMatrix(tensor.type(), outputs, inputs, lengthBytes);
        parts.add(new Part.Matrix(tensor, matrix));
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

    /** Bytes of the region; a multiple of 64. */
    long lengthBytes() {
        return lengthBytes;
    }

    /** All tensors, in the order of the region, which they fill without a gap. */
    List<Part> parts() {
        return parts;
    }

    /** The token embedding. */
    PackedMatrix embedding() {
        return embedding;
    }

    /** The transformer layers. */
    List<Layer> layers() {
        return layers;
    }

    /** Where the last norm starts. */
    long outputNorm() {
        return outputNorm;
    }

    /** The projection to logits; the embedding where the file has none of its own. */
    List<PackedMatrix> head() {
        return head;
    }
}
