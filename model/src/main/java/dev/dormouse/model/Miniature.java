package dev.dormouse.model;

import dev.dormouse.model.kernel.ComputeThreads;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.PackedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * A model of the same formats as a real one, but tiny: its steps run the same code.
 *
 * <p>All weights are zero. One layer stands for all those whose matrices have the same formats. The
 * memory is of the kind that real weights and caches have, since the JIT looks at that, too.
 */
final class Miniature {
    private static final int ROUNDS = 20;
    private static final int BLOCK_TOKENS = 16;
    private static final int BLOCKS = 8;
    private static final int WIDTH = 64;
    private static final int VOCABULARY = 64;

    private final ModelConfig config;
    private final LlamaLayout layout;

    private Miniature(ModelConfig config, LlamaLayout layout) {
        this.config = config;
        this.layout = layout;
    }

    static Miniature of(ModelConfig real, LlamaLayout realLayout) {
        return new Builder(real).build(realLayout);
    }

    /** Computes prefill chunks and decode steps, alone and together. */
    void compute(Kernels kernels) {
        try (ComputeThreads threads = new ComputeThreads(1);
                Arena arena = Arena.ofShared()) {
            LlamaForward forward =
                    new LlamaForward(config, config, List.of(layout), kernels, threads);
            MemorySegment weights = arena.allocate(layout.lengthBytes(), 64);
            KvCacheShape shape = config.kvCacheShape(BLOCK_TOKENS, KvType.F16);
            List<MemorySegment> regions =
                    IntStream.range(0, shape.layers())
                            .mapToObj(i -> arena.allocate(2 * BLOCKS * shape.blockBytes(), 64))
                            .toList();
            PagedKv kv = new PagedKv(shape, 2 * BLOCKS, regions);
            for (int i = 0; i < ROUNDS; i++) {
                // Rows in full groups, a few left over; then alone; then two together.
                step(forward, weights, kv, chunk(0, 0, 40));
                step(forward, weights, kv, chunk(0, 40, 26));
                step(forward, weights, kv, chunk(0, 66, 1));
                step(
                        forward,
                        weights,
                        kv,
                        chunk(0, 67, 1),
                        chunk(1, i % (BLOCKS * BLOCK_TOKENS), 1));
            }
        }
    }

    private void step(
            LlamaForward forward, MemorySegment weights, PagedKv kv, SequenceChunk... chunks) {
        var _ =
                forward.run(
                        StepBatch.of(List.of(chunks), config, kv),
                        List.of(new RankView(weights, kv)));
    }

    private static SequenceChunk chunk(int sequence, int start, int tokens) {
        int[] blocks = IntStream.range(sequence * BLOCKS, (sequence + 1) * BLOCKS).toArray();
        return new SequenceChunk(new int[tokens], start, blocks, 1);
    }

    /** Lays the miniature's weights out, one behind the other. */
    private static final class Builder {
        private final ModelConfig real;
        private final int queries;
        private final int keys;
        private long end;

        Builder(ModelConfig real) {
            this.real = real;
            keys = real.headDimension();
            queries = real.heads() / real.kvHeads() * keys;
        }

        Miniature build(LlamaLayout from) {
            PackedMatrix embedding = matrix(from.embedding(), VOCABULARY, WIDTH);
            Map<List<Object>, LlamaLayout.Layer> distinct = new LinkedHashMap<>();
            for (LlamaLayout.Layer layer : from.layers()) {
                distinct.putIfAbsent(formats(layer), layer);
            }
            List<LlamaLayout.Layer> layers = new ArrayList<>();
            distinct.values().forEach(layer -> layers.add(layer(layer)));
            long outputNorm = vector(WIDTH);
            List<PackedMatrix> head =
                    from.head().getFirst().equals(from.embedding())
                            ? List.of(embedding)
                            : List.of(matrix(from.head().getFirst(), VOCABULARY, WIDTH));
            return new Miniature(
                    config(layers.size()),
                    new LlamaLayout(0, embedding, layers, outputNorm, head, end));
        }

        private ModelConfig config(int layers) {
            return new ModelConfig(
                    real.name(),
                    real.architecture(),
                    VOCABULARY,
                    WIDTH,
                    layers,
                    queries / keys,
                    1,
                    keys,
                    WIDTH,
                    BLOCKS * BLOCK_TOKENS,
                    real.ropeDimensions(),
                    real.ropeBase(),
                    real.rmsEpsilon(),
                    real.ropeDivisors());
        }

        private static List<Object> formats(LlamaLayout.Layer layer) {
            List<Object> formats = new ArrayList<>();
            for (List<PackedMatrix> matrices :
                    List.of(layer.queryKeyValue(), layer.output(), layer.gateUp(), layer.down())) {
                matrices.forEach(matrix -> formats.add(matrix.type()));
            }
            return formats;
        }

        private LlamaLayout.Layer layer(LlamaLayout.Layer from) {
            return new LlamaLayout.Layer(
                    vector(WIDTH),
                    List.of(
                            matrix(from.queryKeyValue().get(0), queries, WIDTH),
                            matrix(from.queryKeyValue().get(1), keys, WIDTH),
                            matrix(from.queryKeyValue().get(2), keys, WIDTH)),
                    from.biases().map(biases -> vector(queries + 2 * keys)),
                    from.headNorms()
                            .map(norms -> new LlamaLayout.HeadNorms(vector(keys), vector(keys))),
                    List.of(matrix(from.output().getFirst(), WIDTH, queries)),
                    vector(WIDTH),
                    List.of(
                            matrix(from.gateUp().get(0), WIDTH, WIDTH),
                            matrix(from.gateUp().get(1), WIDTH, WIDTH)),
                    List.of(matrix(from.down().getFirst(), WIDTH, WIDTH)));
        }

        private PackedMatrix matrix(PackedMatrix from, int outputs, int inputs) {
            PackedMatrix matrix = new PackedMatrix(from.type(), outputs, inputs, end);
            end += matrix.lengthBytes();
            return matrix;
        }

        private long vector(int elements) {
            long offset = end;
            end += (long) elements * Float.BYTES;
            return offset;
        }
    }
}
