package dev.dormouse.cli.serve;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.Engines;
import dev.dormouse.engine.core.MemoryFiles;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A model's files with all that is read from them, and the engine that serves it. */
final class ServedModel implements AutoCloseable {
    private final ModelFiles files;
    private final LlamaModel model;
    private final Tokenizer tokenizer;
    private final ChatTemplate chatTemplate;

    private ServedModel(ModelFiles files, LlamaModel model) {
        this.files = files;
        this.model = model;
        this.tokenizer = files.tokenizer();
        this.chatTemplate = files.chatTemplate(tokenizer);
    }

    static ServedModel open(Path path, ServeOptions options) {
        int threads =
                options.threads == null
                        ? Runtime.getRuntime().availableProcessors()
                        : options.threads;
        ModelFiles files = ModelFiles.open(path);
        try {
            LlamaModel model = files.openModel(threads, options.tensorParallelSize);
            Thread.ofPlatform().daemon().name("dormouse-warm-up").start(model::warmUp);
            return new ServedModel(files, model);
        } catch (RuntimeException e) {
            files.close();
            throw e;
        }
    }

    Tokenizer tokenizer() {
        return tokenizer;
    }

    ChatTemplate chatTemplate() {
        return chatTemplate;
    }

    /**
     * Starts the engine, which owns the model's compute threads from now on; the files stay open
     * for weights that come back.
     */
    Engine startEngine(ServeOptions options, KvSettings settings) {
        EngineConfig config = engineConfig(options, settings);
        MemoryFiles files = new MemoryFiles();
        @Nullable ConnectorHalves connector =
                settings.role() == null
                        ? null
                        : Connectors.open(settings, model.config(), model.ranks(), config, files);
        return Engines.start(config, model, tokenizer, connector, files);
    }

    private EngineConfig engineConfig(ServeOptions options, KvSettings settings) {
        ModelConfig config = model.config();
        int maxModelLength =
                options.maxModelLen == null ? config.contextLength() : options.maxModelLen;
        if (maxModelLength > config.contextLength()) {
            throw new IllegalArgumentException(
                    "--max-model-len is "
                            + maxModelLength
                            + ", but must be at most the model's "
                            + config.contextLength());
        }
        return new EngineConfig(
                options.servedModelName == null ? fileName(options) : options.servedModelName,
                options.kvCacheMemory.bytes(),
                options.blockSize,
                options.kvCacheDtype.type(),
                maxModelLength,
                options.maxNumSeqs,
                options.maxNumBatchedTokens,
                options.maxNumWaiting,
                options.prefixCaching,
                options.sleepMode,
                options.holdRequestsWhileAsleep,
                settings.recomputesFailedLoads(),
                options.poisonWokenMemory);
    }

    private static String fileName(ServeOptions options) {
        Path path = Objects.requireNonNull(options.model).toAbsolutePath().normalize();
        String name = String.valueOf(path.getFileName());
        return name.endsWith(".gguf") ? name.substring(0, name.length() - ".gguf".length()) : name;
    }

    @Override
    public void close() {
        files.close();
    }
}
