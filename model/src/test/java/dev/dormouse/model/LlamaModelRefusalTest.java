package dev.dormouse.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.GgufWriter;
import dev.dormouse.model.gguf.TensorInfo;
import dev.dormouse.model.gguf.TensorType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a model must not accept, and that a refused step wrote nothing. */
final class LlamaModelRefusalTest {
    private static final TinyModel TINY =
            TinyModel.random(true, new SplittableRandom(3), TensorType.Q4_1, TensorType.Q8_0);

    @TempDir private Path directory;
    private Path path;
    private GgufFile file;
    private LlamaModel model;
    private ModelMemory memory;

    @BeforeEach
    void open() {
        path = TINY.write(directory);
        file = GgufFile.open(path);
        model = LlamaModel.open(file, 2);
        memory = new ModelMemory(model, 6, 8, KvType.F16);
    }

    @AfterEach
    void close() {
        memory.close();
        model.close();
        file.close();
    }

    private static SequenceChunk tokens(int start, int[] blocks, int... tokens) {
        return new SequenceChunk(tokens, start, blocks, 1);
    }

    private void assertRefused(String message, SequenceChunk... batch) {
        assertThatThrownBy(() -> memory.forward(batch))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
        for (MemorySegment layer : memory.kv().layers()) {
            for (long i = 0; i < layer.byteSize(); i++) {
                assertThat(layer.get(ValueLayout.JAVA_BYTE, i)).isEqualTo((byte) 0xFF);
            }
        }
    }

    @Test
    void tokensOutsideTheVocabularyAreRefused() {
        SequenceChunk good = tokens(0, new int[] {1}, 5);
        assertRefused(
                "token " + TinyModel.VOCABULARY,
                good,
                tokens(0, new int[] {0}, 1, TinyModel.VOCABULARY, 2));
        assertRefused("token -1", good, tokens(0, new int[] {0}, -1));
    }

    @Test
    void positionsBeyondTheContextAreRefused() {
        int[] blocks = new int[21];
        assertRefused("context is 160", tokens(159, blocks, 1, 2));
        assertRefused("context is 160", tokens(Integer.MAX_VALUE, blocks, 1));
    }

    @Test
    void blocksThatAreMissingOrOutOfRangeAreRefused() {
        assertRefused("positions need 2", tokens(0, new int[] {4}, 1, 2, 3, 4, 5, 6, 7, 8, 9));
        assertRefused("block 6", tokens(8, new int[] {0, 6}, 1));
        assertRefused("block -1", tokens(8, new int[] {-1, 0}, 1));
    }

    @Test
    void aBlockThatIsWrittenBelongsToOneSequence() {
        SequenceChunk writer = tokens(0, new int[] {2}, 1, 2);
        assertRefused("block 2", writer, tokens(4, new int[] {2}, 3));
        assertRefused("block 2", writer, tokens(8, new int[] {2, 3}, 3));
        assertRefused("block 2", tokens(8, new int[] {2, 3}, 3), writer);
        assertRefused("block 5", tokens(8, new int[] {5, 5}, 3));
    }

    @Test
    void anEmptyBatchIsRefused() {
        assertRefused("at least one chunk");
    }

    @Test
    void aFreshStepWorksAfterARefusedOne() {
        assertRefused("token 199", tokens(0, new int[] {1}, 199));
        assertThat(memory.forward(tokens(0, new int[] {1}, 7))).hasSize(1);
    }

    @Test
    void memoryOfTheWrongKindIsRefused() {
        List<SequenceChunk> batch = List.of(tokens(0, new int[] {1}, 5));
        MemorySegment weights = memory.weights();
        PagedKv kv = memory.kv();
        assertThatThrownBy(
                        () ->
                                model.forward(
                                        batch,
                                        List.of(
                                                new RankView(
                                                        weights.asSlice(0, weights.byteSize() - 64),
                                                        kv))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("must be " + model.weightBytes(0));
        assertThatThrownBy(() -> model.loadWeights(0, weights.asReadOnly()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("read-only");
        PagedKv readOnly =
                new PagedKv(
                        kv.shape(),
                        kv.blocks(),
                        kv.layers().stream().map(MemorySegment::asReadOnly).toList());
        assertThatThrownBy(() -> model.forward(batch, List.of(new RankView(weights, readOnly))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("read-only");
        KvCacheShape shape = kv.shape();
        KvCacheShape other = new KvCacheShape(2, 1, 64, shape.blockTokens(), shape.type());
        assertThatThrownBy(
                        () ->
                                model.forward(
                                        batch,
                                        List.of(
                                                new RankView(
                                                        weights,
                                                        new PagedKv(other, 6, kv.layers())))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("this model needs");
    }

    @Test
    void memoryThatTheComputeThreadsCannotReachIsRefused() {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment target = confined.allocate(model.weightBytes(0), 64);
            assertThatThrownBy(() -> model.loadWeights(0, target))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("shared arena");
        }
        MemorySegment gone;
        try (Arena arena = Arena.ofShared()) {
            gone = arena.allocate(model.weightBytes(0), 64);
        }
        assertThatThrownBy(
                        () ->
                                model.forward(
                                        List.of(tokens(0, new int[] {1}, 5)),
                                        List.of(new RankView(gone, memory.kv()))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not alive");
    }

    @Test
    void loadingAgainGivesTheSameBytes() {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment again = arena.allocate(model.weightBytes(0), 64);
            again.fill((byte) 0x11);
            model.loadWeights(0, again);
            assertThat(again.mismatch(memory.weights())).isEqualTo(-1);
        }
    }

    @Test
    void weightsThatChangedInTheFileAreRefused() throws IOException {
        TensorInfo tensor = file.tensor("blk.1.ffn_up.weight");
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            byte changed = (byte) ~file.data(tensor).get(ValueLayout.JAVA_BYTE, 9);
            channel.write(ByteBuffer.wrap(new byte[] {changed}), tensor.fileOffset() + 9);
        }
        assertThatThrownBy(() -> model.loadWeights(0, memory.weights()))
                .isInstanceOf(ModelException.class)
                .hasMessageContaining("blk.1.ffn_up.weight")
                .hasMessageContaining("changed");
    }

    @Test
    void aShortenedFileIsRefused() throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            channel.truncate(4096);
        }
        assertThatThrownBy(() -> model.loadWeights(0, memory.weights()))
                .isInstanceOf(ModelException.class)
                .hasMessageContaining("shortened");
    }

    @Test
    void aClosedModelComputesNothing() {
        model.close();
        model.close();
        assertThatThrownBy(() -> memory.forward(tokens(0, new int[] {1}, 5)))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void filesThatAreNoPlainLlamaModelAreRefused() {
        assertNotOpened(
                "'llama.attention.head_count' is missing",
                new GgufWriter().string("general.architecture", "llama"));
        assertNotOpened(
                "supported is one of [llama, qwen2, qwen3]",
                new GgufWriter().string("general.architecture", "x"));
        assertNotOpened(
                "rope scaling 'yarn'", TINY.writer().string("llama.rope.scaling.type", "yarn"));
        assertNotOpened("8 experts", TINY.writer().uint32("llama.expert_count", 8));
        assertNotOpened(
                "'blk.0.attn_q.bias'",
                TINY.writer().tensor("blk.0.attn_q.bias", TensorType.F32, new byte[512], 128));
    }

    private void assertNotOpened(String message, GgufWriter writer) {
        Path other = writer.write(directory.resolve("other.gguf"));
        try (GgufFile opened = GgufFile.open(other)) {
            assertThatThrownBy(() -> LlamaModel.open(opened, 1))
                    .isInstanceOf(ModelException.class)
                    .hasMessageContaining(message);
        }
    }
}
