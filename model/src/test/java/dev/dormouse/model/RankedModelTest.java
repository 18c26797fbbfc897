package dev.dormouse.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.ScalarKernels;
import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A model split among ranks, against the same model in one piece. */
final class RankedModelTest {
    private static final TensorType[] MIXED = {
        TensorType.Q4_1, TensorType.Q8_0, TensorType.F16, TensorType.Q4_0, TensorType.BF16
    };
    private static final int BLOCKS = 6;
    private static final int BLOCK_TOKENS = 8;

    @TempDir private Path directory;

    /** All logit rows of some steps, and what the KV caches hold then. */
    private record Outcome(List<float[]> rows, List<PagedKv> caches) {}

    private Outcome compute(
            GgufFile file, int ranks, int threads, Kernels kernels, int[] tokens, Arena arena) {
        try (LlamaModel model = LlamaModel.open(file, threads, ranks, kernels);
                ModelMemory memory = new ModelMemory(model, BLOCKS, BLOCK_TOKENS, KvType.BF16)) {
            int[] blocks = memory.blocks(new SplittableRandom(3));
            List<float[]> rows = new ArrayList<>();
            int cut = tokens.length - 5;
            rows.addAll(memory.forward(chunk(tokens, 0, cut, 2, blocks)));
            rows.addAll(memory.forward(chunk(tokens, cut, cut + 3, 0, blocks)));
            rows.addAll(memory.forward(chunk(tokens, cut + 3, cut + 4, 1, blocks)));
            rows.addAll(memory.forward(chunk(tokens, cut + 4, cut + 5, 1, blocks)));
            return new Outcome(
                    rows, memory.ranks().stream().map(rank -> copy(rank.kv(), arena)).toList());
        }
    }

    private static PagedKv copy(PagedKv kv, Arena arena) {
        return new PagedKv(
                kv.shape(),
                kv.blocks(),
                kv.layers().stream()
                        .map(layer -> arena.allocate(layer.byteSize()).copyFrom(layer))
                        .toList());
    }

    private static SequenceChunk chunk(int[] tokens, int from, int to, int logits, int[] blocks) {
        return new SequenceChunk(Arrays.copyOfRange(tokens, from, to), from, blocks, logits);
    }

    private static int[] randomTokens(SplittableRandom random) {
        int[] tokens = random.ints(43, 0, TinyModel.VOCABULARY).toArray();
        tokens[1] = 0;
        tokens[2] = TinyModel.VOCABULARY - 1; // the first and the last rank's
        return tokens;
    }

    /** {@link RankedArchitectureTest} has the K types, whose blocks are longer than these rows. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"Q4_K", "Q5_K", "Q6_K"})
    void logitsAreThoseOfOneRankBitForBit(TensorType type) {
        Seeded.forAll(1, random -> agrees(TinyModel.random(true, random, type), random));
    }

    @Test
    void mixedMatricesAndAHeadOfItsOwnAgreeToo() {
        Seeded.forAll(3, random -> agrees(TinyModel.random(false, random, MIXED), random));
    }

    private void agrees(TinyModel tiny, SplittableRandom random) {
        int[] tokens = randomTokens(random);
        try (GgufFile file = GgufFile.open(tiny.write(directory));
                Arena arena = Arena.ofShared()) {
            Outcome one = compute(file, 1, 2, Kernels.best(), tokens, arena);
            assertThat(one.rows).hasSize(4);
            for (int ranks : new int[] {2, 4}) {
                Kernels kernels = random.nextBoolean() ? Kernels.best() : new ScalarKernels();
                Outcome several = compute(file, ranks, ranks - 1, kernels, tokens, arena);
                for (int row = 0; row < one.rows.size(); row++) {
                    assertThat(several.rows.get(row))
                            .as("%d ranks, row %d", ranks, row)
                            .isEqualTo(one.rows.get(row));
                }
                assertHeadsAreSlices(several.caches, one.caches.getFirst());
            }
        }
    }

    /**
     * Heads are dealt in order, and repeated where there are fewer than ranks: what a reader of
     * another size takes from a block by head is the same as from one rank with all heads.
     */
    private static void assertHeadsAreSlices(List<PagedKv> ranks, PagedKv whole) {
        long headBytes = 2L * BLOCK_TOKENS * TinyModel.HEAD * Short.BYTES;
        for (int rank = 0; rank < ranks.size(); rank++) {
            PagedKv kv = ranks.get(rank);
            int heads = kv.shape().kvHeads();
            assertThat(heads).isEqualTo(Math.max(1, TinyModel.KV_HEADS / ranks.size()));
            int first = rank * TinyModel.KV_HEADS / ranks.size();
            for (int layer = 0; layer < TinyModel.LAYERS; layer++) {
                for (int block = 0; block < BLOCKS; block++) {
                    MemorySegment own =
                            kv.layers()
                                    .get(layer)
                                    .asSlice(block * (heads * headBytes), heads * headBytes);
                    MemorySegment slice =
                            whole.layers()
                                    .get(layer)
                                    .asSlice(
                                            (block * TinyModel.KV_HEADS + first) * headBytes,
                                            heads * headBytes);
                    assertThat(own.mismatch(slice))
                            .as("rank %d, layer %d, block %d", rank, layer, block)
                            .isEqualTo(-1);
                }
            }
        }
    }

    @Test
    void theRanksTogetherHoldTheWeightsOnceAndTheNormsEach() {
        TinyModel tiny = TinyModel.random(false, new SplittableRandom(1), TensorType.F16);
        long norms = (2L * TinyModel.LAYERS + 1) * TinyModel.WIDTH * Float.BYTES;
        try (GgufFile file = GgufFile.open(tiny.write(directory));
                LlamaModel one = LlamaModel.open(file, 1);
                LlamaModel two = LlamaModel.open(file, 1, 2)) {
            assertThat(two.ranks()).isEqualTo(2);
            assertThat(two.config()).isEqualTo(one.config());
            assertThat(two.weightBytes(0) + two.weightBytes(1))
                    .isEqualTo(one.weightBytes(0) + norms);
            assertThat(two.weightBytes(0)).isLessThan(one.weightBytes(0) * 6 / 10);
            assertThat(two.kvCacheShape(16, KvType.F16).blockBytes() * 2)
                    .isEqualTo(one.kvCacheShape(16, KvType.F16).blockBytes());
        }
    }

    @Test
    void aSizeThatDoesNotFitIsRefusedWithItsNumbers() {
        TinyModel tiny = TinyModel.random(true, new SplittableRandom(1), TensorType.F16);
        try (GgufFile file = GgufFile.open(tiny.write(directory))) {
            for (int ranks : new int[] {-1, 0, 3, 8, Integer.MAX_VALUE}) {
                assertThatThrownBy(() -> LlamaModel.open(file, 1, ranks))
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining("size " + ranks + " does not fit 4 heads, 2 KV heads")
                        .hasMessageContaining("can have [1, 2, 4]");
            }
        }
    }

    @Test
    void memoryOfOtherRanksIsRefused() {
        TinyModel tiny = TinyModel.random(true, new SplittableRandom(1), TensorType.F16);
        try (GgufFile file = GgufFile.open(tiny.write(directory));
                LlamaModel model = LlamaModel.open(file, 1, 2);
                ModelMemory memory = new ModelMemory(model, 4, 8, KvType.F16);
                ModelMemory larger = new ModelMemory(model, 5, 8, KvType.F16)) {
            List<SequenceChunk> batch =
                    List.of(new SequenceChunk(new int[] {5}, 0, new int[] {1}, 1));
            RankView first = memory.ranks().getFirst();
            assertThatThrownBy(() -> model.forward(batch, List.of(first)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("memory of 1 ranks, this model has 2");
            RankView second = larger.ranks().get(1);
            assertThatThrownBy(() -> model.forward(batch, List.of(first, second)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("5 blocks")
                    .hasMessageContaining("the first rank has 4");
            assertThat(memory.forward(batch.getFirst())).hasSize(1);
        }
    }

    @Test
    void eachRanksShareOfTheFileHasItsOwnChecksums() throws IOException {
        TinyModel tiny = TinyModel.random(true, new SplittableRandom(1), TensorType.F16);
        Path path = tiny.write(directory);
        try (GgufFile file = GgufFile.open(path);
                LlamaModel model = LlamaModel.open(file, 2, 2);
                ModelMemory memory = new ModelMemory(model, 4, 8, KvType.F16)) {
            TensorInfo gate = file.tensor("blk.1.ffn_gate.weight");
            long last = file.data(gate).byteSize() - 1;
            flipByte(path, file, gate, last);
            model.loadWeights(0, memory.ranks().get(0).weights());
            assertThatThrownBy(() -> model.loadWeights(1, memory.ranks().get(1).weights()))
                    .isInstanceOf(ModelException.class)
                    .hasMessageContaining("blk.1.ffn_gate.weight");
            flipByte(path, file, gate, last); // back
            flipByte(path, file, file.tensor("blk.0.ffn_down.weight"), 0);
            model.loadWeights(1, memory.ranks().get(1).weights());
            assertThatThrownBy(() -> model.loadWeights(0, memory.ranks().get(0).weights()))
                    .isInstanceOf(ModelException.class)
                    .hasMessageContaining("blk.0.ffn_down.weight");
        }
    }

    private static void flipByte(Path path, GgufFile file, TensorInfo tensor, long at)
            throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            byte changed = (byte) ~file.data(tensor).get(ValueLayout.JAVA_BYTE, at);
            channel.write(ByteBuffer.wrap(new byte[] {changed}), tensor.fileOffset() + at);
        }
    }
}
