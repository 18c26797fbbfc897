package dev.dormouse.cli.serve;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.Engines;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A model file with all that is read from it, and the engine that serves it. */
final class ServedModel implements AutoCloseable {
    private final GgufFile file;
    private final LlamaModel model;
    private final Tokenizer tokenizer;
    private final ChatTemplate chatTemplate;

    private ServedModel(GgufFile file, LlamaModel model) {
        this.file = file;
        this.model = model;
        this.tokenizer = Tokenizer.of(file.metadata());
        this.chatTemplate = ChatTemplate.of(file.metadata(), tokenizer);
    }

    static ServedModel open(Path path, ServeOptions options) {
        int threads =
                options.threads == null
                        ? Runtime.getRuntime().availableProcessors()
                        : options.threads;
        GgufFile file = GgufFile.open(path);
        try {
            LlamaModel model = LlamaModel.open(file, threads, options.tensorParallelSize);
            Thread.ofPlatform().daemon().name("dormouse-warm-up").start(model::warmUp);
            return new ServedModel(file, model);
        } catch (RuntimeException e) {
            file.close();
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
     * Starts the engine, which owns the model's compute threads from now on; the file stays open
     * for weights that come back.
     */
    Engine startEngine(ServeOptions options, KvSettings settings) {
        EngineConfig config = engineConfig(options, settings);
        @Nullable ConnectorHalves connector =
                settings.role() == null
                        ? null
                        : Connectors.open(settings, model.config(), model.ranks(), config);
        return Engines.start(config, model, tokenizer, connector);
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
        String name = String.valueOf(Objects.requireNonNull(options.model).getFileName());
        return name.endsWith(".gguf") ? name.substring(0, name.length() - ".gguf".length()) : name;
    }

    @Override
    public void close() {
        file.close();
    }
}
