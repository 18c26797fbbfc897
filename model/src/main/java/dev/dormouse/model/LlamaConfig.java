package dev.dormouse.model;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.GgufMetadata;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.LongStream;

/** Reads the extents of a model from a GGUF file's metadata, under llama.cpp's keys. */
final class LlamaConfig {
    /** The tensor in which llama.cpp's converter writes how Llama 3 scales its frequencies. */
    static final String ROPE_DIVISORS = "rope_freqs.weight";

    private static final Set<String> ARCHITECTURES = Set.of("llama", "qwen2", "qwen3");
    private static final double DEFAULT_ROPE_BASE = 10_000;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final GgufFile file;
    private final GgufMetadata metadata;
    private final String architecture;

    private LlamaConfig(GgufFile file) {
        this.file = file;
        metadata = file.metadata();
        architecture = metadata.string("general.architecture");
    }

    static ModelConfig read(GgufFile file) {
        return new LlamaConfig(file).read();
    }

    private ModelConfig read() {
        if (!ARCHITECTURES.contains(architecture)) {
            throw refused(
                    "architecture '" + architecture + "'",
                    "one of " + ARCHITECTURES.stream().sorted().toList());
        }
        int heads = metadata.positiveInt(key("attention.head_count"));
        int width = metadata.positiveInt(key("embedding_length"));
        int headDimension = optional("attention.key_length", width / heads);
        int ropeDimensions = optional("rope.dimension_count", headDimension);
        refuseUnknown(headDimension, ropeDimensions);
        return new ModelConfig(
                metadata.findString("general.name").orElse(file.path().toString()),
                architecture,
                vocabularySize(),
                width,
                metadata.positiveInt(key("block_count")),
                heads,
                optional("attention.head_count_kv", heads),
                headDimension,
                metadata.positiveInt(key("feed_forward_length")),
                metadata.positiveInt(key("context_length")),
                ropeDimensions,
                (float) metadata.findReal(key("rope.freq_base")).orElse(DEFAULT_ROPE_BASE),
                (float) metadata.real(key("attention.layer_norm_rms_epsilon")),
                ropeDivisors(ropeDimensions));
    }

    private String key(String name) {
        return architecture + "." + name;
    }

    private int optional(String name, int otherwise) {
        String key = key(name);
        return metadata.findInteger(key).isPresent() ? metadata.positiveInt(key) : otherwise;
    }

    private int vocabularySize() {
        long rows = file.tensor("token_embd.weight").rows();
        if (rows > Integer.MAX_VALUE) {
            throw refused("vocabulary of " + rows, "at most " + Integer.MAX_VALUE);
        }
        return (int) rows;
    }

    private List<Double> ropeDivisors(int ropeDimensions) {
        Optional<TensorInfo> tensor = file.findTensor(ROPE_DIVISORS);
        if (tensor.isEmpty()) {
            return List.of();
        }
        List<Long> shape = List.of(ropeDimensions / 2L);
        if (tensor.get().type() != TensorType.F32 || !tensor.get().shape().equals(shape)) {
            throw refused(
                    "tensor '%s' of %s %s"
                            .formatted(ROPE_DIVISORS, tensor.get().type(), tensor.get().shape()),
                    "F32 " + shape);
        }
        MemorySegment data = file.data(tensor.get());
        List<Double> divisors =
                LongStream.range(0, ropeDimensions / 2)
                        .mapToObj(i -> (double) data.get(FLOAT, Float.BYTES * i))
                        .toList();
        for (double divisor : divisors) {
            if (!(divisor > 0) || !Double.isFinite(divisor)) {
                throw refused(divisor + " in '" + ROPE_DIVISORS + "'", "a positive number");
            }
        }
        return divisors;
    }

    private void refuseUnknown(int headDimension, int ropeDimensions) {
        // Pairs of a Llama head lie side by side in a file, those of a Qwen head half of it apart.
        if (!architecture.equals("llama") && ropeDimensions != headDimension) {
            throw refused(
                    ropeDimensions + " rotated dimensions", "the head dimension " + headDimension);
        }
        int valueLength = optional("attention.value_length", headDimension);
        if (valueLength != headDimension) {
            throw refused("value length " + valueLength, "key length " + headDimension);
        }
        String scaling = metadata.findString(key("rope.scaling.type")).orElse("none");
        if (!scaling.equals("none")) {
            throw refused("rope scaling '" + scaling + "'", "none");
        }
        long experts = metadata.findInteger(key("expert_count")).orElse(0);
        if (experts != 0) {
            throw refused(experts + " experts", "a dense model");
        }
    }

    private ModelException refused(String found, String supported) {
        return ModelConfig.refused(file.path(), found, supported);
    }
}
