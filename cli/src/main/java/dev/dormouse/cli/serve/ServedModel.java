package dev.dormouse.cli.serve;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.Engines;
import dev.dormouse.engine.core.MemoryFiles;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.server.ModelText;
import java.nio.file.Path;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A model's files with all that is read from them, and the engine that serves it. */
final class ServedModel implements AutoCloseable {
    private final ModelFiles files;
    private final LlamaModel model;
    private final Supplier<ModelText> text;

    private ServedModel(ModelFiles files, LlamaModel model, Supplier<ModelText> text) {
        this.files = files;
        this.model = model;
        this.text = text;
    }

    static ServedModel open(Path path, ServeOptions options) {
        int threads =
                options.threads == null
                        ? Runtime.getRuntime().availableProcessors()
                        : options.threads;
        ModelFiles files = ModelFiles.open(path);
        try {
            return new ServedModel(
                    files,
                    files.openModel(threads, options.tensorParallelSize),
                    Aside.start("dormouse-tokenizer", () -> text(files)));
        } catch (RuntimeException | Error e) {
            files.close();
            throw e;
        }
    }

    private static ModelText text(ModelFiles files) {
        Tokenizer tokenizer = files.tokenizer();
        return new ModelText(tokenizer, files.chatTemplate(tokenizer));
    }

    /** How the model reads and writes text; waits until that is read from the files. */
    ModelText text() {
        return text.get();
    }

    /** Has the kernels compiled; see {@link LlamaModel#warmUp}. */
    void warmUp() {
        model.warmUp();
    }

    /**
     * Starts the engine, which owns the model's compute threads from now on; the files stay open
     * for weights that come back.
     */
    Engine startEngine(ServeOptions options, KvSettings settings) {
        try {
            EngineConfig config = engineConfig(options, settings);
            MemoryFiles files = new MemoryFiles();
            return Engines.start(
                    config,
                    model,
                    () -> text().tokenizer(),
                    connector(settings, config, files),
                    files);
        } catch (RuntimeException | Error e) {
            try (model) { // also if no engine had it yet
                throw e;
            }
        }
    }

    private Supplier<@Nullable ConnectorHalves> connector(
            KvSettings settings, EngineConfig config, MemoryFiles files) {
        return settings.role() == null
                ? () -> null
                : Aside.<@Nullable ConnectorHalves>start(
                        "dormouse-connector",
                        () ->
                                Connectors.open(
                                        settings, model.config(), model.ranks(), config, files));
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
