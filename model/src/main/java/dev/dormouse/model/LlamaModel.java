package dev.dormouse.model;

import dev.dormouse.model.folder.ModelFolder;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.RowOrder;
import dev.dormouse.model.kernel.ScalarKernels;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A model of the Llama architecture, RMS norm, rotary grouped-query attention, gated feed-forward,
 * or of Qwen 2's, which adds biases, or Qwen 3's, which adds norms of heads.
 *
 * <p>A row's logits depend on the tokens before it and on nothing else, bit for bit: neither on the
 * other rows of its steps, nor on how its sequence was cut into chunks, nor on blocks, threads or
 * vector width.
 */
public final class LlamaModel implements LanguageModel {
    private static final System.Logger LOG = System.getLogger("dormouse.model");

    private final ModelConfig config;
    private final LlamaLayout layout;
    private final Kernels kernels;
    private final WeightLoader loader;
    private final ComputeThreads threads;
    private final LlamaForward forward;

    private LlamaModel(
            ModelConfig config,
            TensorSource source,
            LlamaWeights weights,
            Kernels kernels,
            int count) {
        this.config = config;
        this.kernels = kernels;
        layout = weights.layout();
        loader = new WeightLoader(source, weights);
        threads = new ComputeThreads(count);
        forward = new LlamaForward(config, layout, kernels, threads);
    }

    /**
     * Opens the model in a file. The file stays the caller's, who keeps it open as long as weights
     * may be loaded.
     *
     * @param threads that compute, the one that calls {@link #forward} among them
     * @throws ModelException if the file holds no plain model of a supported architecture
     */
    public static LlamaModel open(GgufFile file, int threads) {
        return open(file, threads, Kernels.best());
    }

    static LlamaModel open(GgufFile file, int threads, Kernels kernels) {
        ModelConfig config = LlamaConfig.read(file);
        // llama.cpp's converter reorders the rows of Llama models only.
        RowOrder rotated =
                config.architecture().equals("llama")
                        ? RowOrder.splitHalves(config.headDimension())
                        : RowOrder.AS_STORED;
        return open(file, config, rotated, threads, kernels);
    }

    /**
     * Opens the model in a folder. The folder stays the caller's, who keeps it open as long as
     * weights may be loaded.
     *
     * @param threads that compute, the one that calls {@link #forward} among them
     * @throws ModelException if the folder's tensors are not those of its configuration
     */
    public static LlamaModel open(ModelFolder folder, int threads) {
        return open(folder, folder.config(), RowOrder.AS_STORED, threads, Kernels.best());
    }

    private static LlamaModel open(
            TensorSource source,
            ModelConfig config,
            RowOrder rotated,
            int threads,
            Kernels kernels) {
        config.check(source.path());
        LlamaWeights weights = new LlamaWeights(source, config, rotated);
        boolean scalar = kernels instanceof ScalarKernels;
        LOG.log(
                scalar ? System.Logger.Level.WARNING : System.Logger.Level.INFO,
                "opened model name=\"{0}\" weightBytes={1} kernels={2} threads={3}"
                        + (scalar ? "; start Java with --add-modules jdk.incubator.vector" : ""),
                config.name(),
                Long.toString(weights.layout().lengthBytes()),
                kernels.name(),
                threads);
        return new LlamaModel(config, source, weights, kernels, threads);
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public long weightBytes() {
        return layout.lengthBytes();
    }

    @Override
    public void loadWeights(MemorySegment target) {
        requireWeights(target);
        if (target.isReadOnly()) {
            throw new IllegalArgumentException("load weights: the target is read-only");
        }
        loader.load(target, threads);
    }

    @Override
    public Logits forward(List<SequenceChunk> batch, MemorySegment weights, PagedKv kv) {
        requireWeights(weights);
        requireCache(kv);
        return forward.run(StepBatch.of(batch, config, kv), weights, kv);
    }

    /**
     * Has the kernels compiled, by computing with a miniature of this model, so that the first real
     * prompt need not wait for the JIT. Takes a second or two of one processor; touches no memory
     * of the model's own, so that any thread may call it at any time, also beside {@link #forward}.
     */
    public void warmUp() {
        Miniature.of(config, layout).compute(kernels);
    }

    private void requireWeights(MemorySegment weights) {
        if (weights.byteSize() != weightBytes()) {
            throw new IllegalArgumentException(
                    "weight region: %d bytes, must be %d"
                            .formatted(weights.byteSize(), weightBytes()));
        }
        requireShared("weight region", weights);
    }

    private void requireCache(PagedKv kv) {
        KvCacheShape shape = kv.shape();
        KvCacheShape expected = config.kvCacheShape(shape.blockTokens(), shape.type());
        if (!shape.equals(expected)) {
            throw new IllegalArgumentException(
                    "KV view: shape %s, this model needs %s".formatted(shape, expected));
        }
        for (MemorySegment layer : kv.layers()) {
            if (layer.isReadOnly()) {
                throw new IllegalArgumentException("KV view: a region is read-only");
            }
            requireShared("KV view", layer);
        }
    }

    private void requireShared(String what, MemorySegment segment) {
        if (!segment.scope().isAlive()
                || !segment.isAccessibleBy(Thread.currentThread())
                || !threads.allThreads(segment::isAccessibleBy)) {
            throw new IllegalArgumentException(
                    what
                            + ": not alive, or not accessible by the compute threads; use a shared arena");
        }
    }

    @Override
    public void close() {
        threads.close();
    }
}
