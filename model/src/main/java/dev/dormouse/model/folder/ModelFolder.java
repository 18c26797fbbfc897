package dev.dormouse.model.folder;

import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.TensorSource;
import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.json.JsonFields;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A model in a folder: {@code config.json}, {@code model.safetensors} or its shards, {@code
 * tokenizer.json}, and, where they are, {@code generation_config.json}, {@code
 * tokenizer_config.json} and {@code chat_template.jinja}.
 *
 * <p>The weights are mapped, so they must not be shortened while the folder is open; everything
 * else is read at once or when it is asked for. Safe from any thread.
 */
public final class ModelFolder implements ModelFiles, TensorSource {
    private static final long MAX_CONFIG_BYTES = 4 << 20;
    private static final long MAX_INDEX_BYTES = 16 << 20;
    private static final long MAX_TOKENIZER_BYTES = 64 << 20;
    private static final String HEAD = "lm_head.weight";

    private final Path path;
    private final FolderConfig fields;
    private final ModelConfig config;
    private final FolderTensors tensors;

    private ModelFolder(Path path, FolderConfig fields, ModelConfig config, FolderTensors tensors) {
        this.path = path;
        this.fields = fields;
        this.config = config;
        this.tensors = tensors;
    }

    /**
     * Opens a folder, and checks its configuration and the headers of its weights.
     *
     * @throws ModelException when a file is missing or malformed, or the model is of an unsupported
     *     kind
     */
    public static ModelFolder open(Path path) {
        FolderConfig fields =
                new FolderConfig(JsonFields.read(path.resolve("config.json"), MAX_CONFIG_BYTES));
        ModelConfig config = fields.read(path);
        FolderTensors tensors = FolderTensors.open(path, MAX_INDEX_BYTES);
        if (!fields.tiesEmbeddings() && tensors.find(HEAD) == null) {
            tensors.close();
            throw new ModelException(
                    "open model %s: it has no tensor '%s', though 'tie_word_embeddings' is not true"
                            .formatted(path, HEAD));
        }
        return new ModelFolder(path, fields, config, tensors);
    }

    /** The model's extents and constants. */
    public ModelConfig config() {
        return config;
    }

    @Override
    public LlamaModel openModel(int threads, int ranks) {
        return LlamaModel.open(this, threads, ranks);
    }

    @Override
    public Tokenizer tokenizer() {
        Optional<JsonFields> generation =
                JsonFields.findFile(path.resolve("generation_config.json"), MAX_CONFIG_BYTES);
        List<Long> ends =
                generation
                        .map(file -> file.naturals("eos_token_id"))
                        .filter(ids -> !ids.isEmpty())
                        .orElseGet(fields::endTokens);
        return Tokenizer.of(
                JsonFields.read(path.resolve("tokenizer.json"), MAX_TOKENIZER_BYTES),
                tokenizerConfig(),
                ends,
                config.vocabularySize());
    }

    @Override
    public ChatTemplate chatTemplate(Tokenizer tokenizer) {
        return ChatTemplate.of(chatTemplateSource().orElse(null), tokenizer);
    }

    private Optional<String> chatTemplateSource() {
        Path file = path.resolve("chat_template.jinja");
        if (Files.exists(file)) {
            try {
                if (Files.size(file) > MAX_CONFIG_BYTES) {
                    throw new ModelException(
                            "read %s: more than %d bytes".formatted(file, MAX_CONFIG_BYTES));
                }
                return Optional.of(Files.readString(file));
            } catch (IOException e) {
                throw new ModelException("read " + file + ": " + e, e);
            }
        }
        return tokenizerConfig().flatMap(ModelFolder::chatTemplateIn);
    }

    /** One template, or several by name. */
    private static Optional<String> chatTemplateIn(JsonFields tokenizerConfig) {
        String field = "chat_template";
        if (!tokenizerConfig.isArray(field)) {
            return tokenizerConfig.findString(field);
        }
        return tokenizerConfig.objects(field).stream()
                .filter(template -> template.string("name").equals("default"))
                .map(template -> template.string("template"))
                .findFirst();
    }

    private Optional<JsonFields> tokenizerConfig() {
        return JsonFields.findFile(path.resolve("tokenizer_config.json"), MAX_CONFIG_BYTES);
    }

    @Override
    public Path path() {
        return path;
    }

    @Override
    public Collection<TensorInfo> tensors() {
        return tensors.names().stream()
                .filter(name -> !TensorNames.isRedundant(name) && !isTiedHead(name))
                .map(name -> Objects.requireNonNull(tensors.find(name)))
                .toList();
    }

    private boolean isTiedHead(String name) {
        return fields.tiesEmbeddings() && name.equals(HEAD);
    }

    @Override
    public Optional<TensorInfo> findTensor(String name) {
        return TensorNames.inFolder(name).filter(own -> !isTiedHead(own)).map(tensors::find);
    }

    @Override
    public TensorInfo tensor(String name) {
        String own = TensorNames.inFolder(name).orElse(name);
        @Nullable TensorInfo tensor = tensors.find(own);
        if (tensor == null) {
            throw new ModelException(
                    "read %s: it has no tensor '%s' among its %d"
                            .formatted(path, own, tensors.names().size()));
        }
        return tensor;
    }

    @Override
    public MemorySegment data(TensorInfo tensor) {
        return tensors.data(tensor);
    }

    @Override
    public void close() {
        tensors.close();
    }

    @Override
    public String toString() {
        return "ModelFolder[" + path + ", " + tensors.names().size() + " tensors]";
    }
}
