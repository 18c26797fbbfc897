package dev.dormouse.model;

import dev.dormouse.benchmarks.Timed;
import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.Kernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.SplittableRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.TearDown;

/** Attention of one layer of the default model's extents, over KV blocks in random order. */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class AttentionBenchmark extends Timed {
    private static final int HEADS = 9;
    private static final int KV_HEADS = 3;
    private static final int HEAD = 64;
    private static final int BLOCK_TOKENS = 16;

    /** Tokens in the cache, those that are computed among them. */
    @Param({"128", "1024"})
    public int context;

    /** Tokens that are computed: 1 in decoding, more in a prompt. */
    @Param({"1", "128"})
    public int rows;

    /** That compute. */
    @Param("1")
    public int threads;

    private final Arena arena = Arena.ofShared();
    private MemorySegment cache;
    private ComputeThreads pool;
    private PagedAttention attention;
    private StepBatch batch;
    private KvCacheShape shape;
    private float[] queries;
    private float[] out;

    /** Fills a cache with random K and V. */
    @Setup
    public void setUp() {
        SplittableRandom random = new SplittableRandom(1);
        ModelConfig config =
                new ModelConfig(
                        "attention",
                        "llama",
                        1,
                        HEADS * HEAD,
                        1,
                        HEADS,
                        KV_HEADS,
                        HEAD,
                        HEAD,
                        context,
                        HEAD,
                        1e4f,
                        1e-5f,
                        List.of());
        shape = config.kvCacheShape(BLOCK_TOKENS, KvType.F16);
        int blocks = Math.ceilDiv(context, BLOCK_TOKENS);
        cache = arena.allocate(blocks * shape.blockBytes(), 64);
        for (long at = 0; at < cache.byteSize(); at += Short.BYTES) {
            short element = Float.floatToFloat16(random.nextFloat() - 0.5f);
            cache.set(ValueLayout.JAVA_SHORT, at, element);
        }
        SequenceChunk chunk =
                new SequenceChunk(new int[rows], context - rows, shuffled(blocks, random), 1);
        batch = StepBatch.of(List.of(chunk), config, new PagedKv(shape, blocks, List.of(cache)));
        queries = new float[rows * HEADS * HEAD];
        for (int i = 0; i < queries.length; i++) {
            queries[i] = random.nextFloat() - 0.5f;
        }
        out = new float[queries.length];
        pool = new ComputeThreads(threads);
        attention = new PagedAttention(Kernels.best(), pool, config);
    }

    private static int[] shuffled(int count, SplittableRandom random) {
        int[] blocks = new int[count];
        for (int i = 0; i < count; i++) {
            int other = random.nextInt(i + 1);
            blocks[i] = blocks[other];
            blocks[other] = i;
        }
        return blocks;
    }

    /** Ends the threads. */
    @TearDown
    public void tearDown() {
        pool.close();
        arena.close();
    }

    /** The plan, which a step makes once for all layers, and one layer. */
    @Benchmark
    public float[] layer() {
        attention.plan(batch, shape);
        attention.run(cache, queries, HEADS * HEAD, out);
        return out;
    }
}
