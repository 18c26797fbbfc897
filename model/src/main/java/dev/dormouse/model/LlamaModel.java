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
 * other rows of its steps, nor on how its sequence was cut into chunks, nor on blocks, threads,
 * vector width or ranks.
 */
public final class LlamaModel implements LanguageModel {
    private static final System.Logger LOG = System.getLogger("dormouse.model");

    private final ModelConfig config;
    private final ModelConfig ofRank;
    private final List<LlamaLayout> layouts;
    private final Kernels kernels;
    private final List<WeightLoader> loaders;
    private final ComputeThreads threads;
    private final LlamaForward forward;

    private LlamaModel(
            ModelConfig config,
            TensorSource source,
            List<LlamaWeights> ranks,
            Kernels kernels,
            int count) {
        this.config = config;
        this.kernels = kernels;
        ofRank = config.ofRank(ranks.size());
        layouts = ranks.stream().map(LlamaWeights::layout).toList();
        loaders = ranks.stream().map(weights -> new WeightLoader(source, weights)).toList();
        threads = new ComputeThreads(count);
        forward = new LlamaForward(config, ofRank, layouts, kernels, threads);
    }

    /** Opens the model in a file for one rank; see {@link #open(GgufFile, int, int)}. */
    public static LlamaModel open(GgufFile file, int threads) {
        return open(file, threads, 1);
    }

    /**
     * Opens the model in a file. The file stays the caller's, who keeps it open as long as weights
     * may be loaded.
     *
     * @param threads that compute, the one that calls {@link #forward} among them
     * @param ranks tensor parallel ranks
     * @throws ModelException if the file holds no plain model of a supported architecture
     * @throws IllegalArgumentException if the model cannot be dealt to that many ranks
     */
    public static LlamaModel open(GgufFile file, int threads, int ranks) {
        return open(file, threads, ranks, Kernels.best());
    }

    static LlamaModel open(GgufFile file, int threads, int ranks, Kernels kernels) {
        ModelConfig config = LlamaConfig.read(file);
        // llama.cpp's converter reorders the rows of Llama models only.
        RowOrder rotated =
                config.architecture().equals("llama")
                        ? RowOrder.splitHalves(config.headDimension())
                        : RowOrder.AS_STORED;
        return open(file, config, rotated, threads, ranks, kernels);
    }

    /**
     * Opens the model in a folder. The folder stays the caller's, who keeps it open as long as
     * weights may be loaded.
     *
     * @param threads that compute, the one that calls {@link #forward} among them
     * @param ranks tensor parallel ranks
     * @throws ModelException if the folder's tensors are not those of its configuration
     * @throws IllegalArgumentException if the model cannot be dealt to that many ranks
     */
    public static LlamaModel open(ModelFolder folder, int threads, int ranks) {
        return open(folder, folder.config(), RowOrder.AS_STORED, threads, ranks, Kernels.best());
    }

    private static LlamaModel open(
            TensorSource source,
            ModelConfig config,
            RowOrder rotated,
            int threads,
            int ranks,
            Kernels kernels) {
        config.check(source.path());
        List<LlamaWeights> weights =
                Shard.of(config, ranks).stream()
                        .map(shard -> new LlamaWeights(source, shard, rotated))
                        .toList();
        boolean scalar = kernels instanceof ScalarKernels;
        LOG.log(
                scalar ? System.Logger.Level.WARNING : System.Logger.Level.INFO,
                "opened model name=\"{0}\" weightBytes={1} kernels={2} threads={3} ranks={4}"
                        + (scalar ? "; start Java with --add-modules jdk.incubator.vector" : ""),
                config.name(),
                Long.toString(weights.stream().mapToLong(w -> w.layout().lengthBytes()).sum()),
                kernels.name(),
                threads,
                ranks);
        return new LlamaModel(config, source, weights, kernels, threads);
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public int ranks() {
        return layouts.size();
    }

    @Override
    public long weightBytes(int rank) {
        return layouts.get(rank).lengthBytes();
    }

    @Override
    public void loadWeights(int rank, MemorySegment target) {
        requireWeights(rank, target);
        if (target.isReadOnly()) {
            throw new IllegalArgumentException("load weights: the target is read-only");
        }
        loaders.get(rank).load(target, threads);
    }

    @Override
    public Logits forward(List<SequenceChunk> batch, List<RankView> ranks) {
        if (ranks.size() != ranks()) {
            throw new IllegalArgumentException(
                    "forward: memory of %d ranks, this model has %d"
                            .formatted(ranks.size(), ranks()));
        }
        PagedKv first = ranks.getFirst().kv();
        for (int rank = 0; rank < ranks.size(); rank++) {
            requireWeights(rank, ranks.get(rank).weights());
            requireCache(ranks.get(rank).kv(), first);
        }
        return forward.run(StepBatch.of(batch, config, first), ranks);
    }

    /**
     * Has the kernels compiled, by computing with a miniature of this model, so that the first real
     * prompt need not wait for the JIT. Takes a second or two of one processor; touches no memory
     * of the model's own, so that any thread may call it at any time, also beside {@link #forward}.
     */
    public void warmUp() {
        Miniature.of(ofRank, layouts.getFirst()).compute(kernels);
    }

    private void requireWeights(int rank, MemorySegment weights) {
        if (weights.byteSize() != weightBytes(rank)) {
            throw new IllegalArgumentException(
                    "weight region: %d bytes, must be %d"
                            .formatted(weights.byteSize(), weightBytes(rank)));
        }
        requireShared("weight region", weights);
    }

    private void requireCache(PagedKv kv, PagedKv first) {
        KvCacheShape shape = kv.shape();
        KvCacheShape expected =
                ofRank.kvCacheShape(first.shape().blockTokens(), first.shape().type());
        if (!shape.equals(expected) || kv.blocks() != first.blocks()) {
            throw new IllegalArgumentException(
                    "KV view: shape %s, %d blocks; this model needs %s, the first rank has %d"
                            .formatted(shape, kv.blocks(), expected, first.blocks()));
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
