package dev.dormouse.cli.serve;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * A folder with a random Llama model that one or three ranks can share, as the default model can,
 * but a thousandth of its size. Tokenizer and chat template are those of a tiny model of module
 * {@code model}.
 */
public final class TinyModelFolder {
    static final int LAYERS = 2;
    static final int KV_HEADS = 3;
    static final int HEAD = 32;

    private static final int WIDTH = KV_HEADS * HEAD;
    private static final int INNER = 96;
    private static final int VOCABULARY = 384;
    private static final Path MODEL = Path.of("../model/src/test/resources/folders/llama");
    private static final ObjectMapper JSON = new ObjectMapper();

    private TinyModelFolder() {}

    /** Writes the folder; answers the file of its weights. */
    public static Path write(Path folder) {
        try {
            Files.createDirectories(folder);
            for (String name : List.of("tokenizer.json", "tokenizer_config.json")) {
                Files.copy(MODEL.resolve(name), folder.resolve(name));
            }
            ObjectNode config = (ObjectNode) JSON.readTree(MODEL.resolve("config.json").toFile());
            config.put("hidden_size", WIDTH)
                    .put("intermediate_size", INNER)
                    .put("num_hidden_layers", LAYERS)
                    .put("num_attention_heads", KV_HEADS)
                    .put("num_key_value_heads", KV_HEADS)
                    .put("head_dim", HEAD)
                    .put("vocab_size", VOCABULARY)
                    .put("max_position_embeddings", 4096)
                    .put("torch_dtype", "float32");
            JSON.writeValue(folder.resolve("config.json").toFile(), config);
            Path weights = folder.resolve("model.safetensors");
            Files.write(weights, safetensors());
            return weights;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Map<String, List<Integer>> shapes() {
        Map<String, List<Integer>> shapes = new LinkedHashMap<>();
        shapes.put("model.embed_tokens", List.of(VOCABULARY, WIDTH));
        for (int layer = 0; layer < LAYERS; layer++) {
            String prefix = "model.layers." + layer + ".";
            for (String name : List.of("q", "k", "v", "o")) {
                shapes.put(prefix + "self_attn." + name + "_proj", List.of(WIDTH, WIDTH));
            }
            shapes.put(prefix + "mlp.gate_proj", List.of(INNER, WIDTH));
            shapes.put(prefix + "mlp.up_proj", List.of(INNER, WIDTH));
            shapes.put(prefix + "mlp.down_proj", List.of(WIDTH, INNER));
            shapes.put(prefix + "input_layernorm", List.of(WIDTH));
            shapes.put(prefix + "post_attention_layernorm", List.of(WIDTH));
        }
        shapes.put("model.norm", List.of(WIDTH));
        shapes.put("lm_head", List.of(VOCABULARY, WIDTH));
        return shapes;
    }

    private static byte[] safetensors() {
        ObjectNode header = JSON.createObjectNode();
        List<Integer> sizes = new ArrayList<>();
        int offset = 0;
        for (Map.Entry<String, List<Integer>> tensor : shapes().entrySet()) {
            int elements = tensor.getValue().stream().reduce(1, (a, b) -> a * b);
            ObjectNode entry = header.putObject(tensor.getKey() + ".weight").put("dtype", "F32");
            tensor.getValue().forEach(entry.putArray("shape")::add);
            entry.putArray("data_offsets").add(offset).add(offset + elements * Float.BYTES);
            offset += elements * Float.BYTES;
            sizes.add(elements);
        }
        byte[] json = header.toString().getBytes(StandardCharsets.UTF_8);
        ByteBuffer file =
                ByteBuffer.allocate(Long.BYTES + json.length + offset)
                        .order(ByteOrder.LITTLE_ENDIAN);
        file.putLong(json.length).put(json);
        SplittableRandom random = new SplittableRandom(11);
        for (int elements : sizes) {
            // Norms, as long as a row, are around 1; so large are the others that tokens vary.
            float mean = elements == WIDTH ? 1 : 0;
            for (int i = 0; i < elements; i++) {
                file.putFloat(mean + (float) random.nextDouble(-0.4, 0.4));
            }
        }
        return file.array();
    }
}
