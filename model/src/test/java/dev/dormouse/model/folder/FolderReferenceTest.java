package dev.dormouse.model.folder;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.KvType;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.ModelMemory;
import dev.dormouse.model.SequenceChunk;
import dev.dormouse.model.TestFolders;
import dev.dormouse.model.chat.ChatMessage;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Models in folders against transformers: Llama with scaled rotation, in BF16 and two files; Qwen 2
 * with biases and tied embeddings, in F16; Qwen 3 with norms of heads, in F32.
 */
final class FolderReferenceTest {
    private static final int BLOCKS = 16;

    /** Half precision keys and values in our cache are all that differs. */
    private static final Offset<Float> TOLERANCE = Offset.offset(0.03f);

    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen2", "qwen3"})
    void logitsAndGreedyTokensAreThoseOfTransformers(String name) {
        try (ModelFiles files = ModelFiles.open(TestFolders.folder(name));
                LlamaModel model = files.openModel(2);
                ModelMemory memory = new ModelMemory(model, BLOCKS, 16, KvType.F16)) {
            int[] blocks = memory.blocks(new SplittableRandom(1));
            for (TestFolders.Answer answer : TestFolders.answers(name)) {
                int[] tokens = answer.tokens();
                float[] logits = memory.forward(new SequenceChunk(tokens, 0, blocks, 1)).getFirst();
                assertClose(logits, answer.first());
                List<Integer> greedy = new ArrayList<>(List.of(best(logits)));
                while (greedy.size() < answer.greedy().length) {
                    int[] last = {greedy.getLast()};
                    int position = tokens.length + greedy.size() - 1;
                    logits =
                            memory.forward(new SequenceChunk(last, position, blocks, 1)).getFirst();
                    greedy.add(best(logits));
                }
                assertThat(greedy).as(answer.text()).containsExactly(boxed(answer.greedy()));
                assertClose(logits, answer.last());
            }
        }
    }

    private static void assertClose(float[] actual, float[] expected) {
        assertThat(actual).hasSameSizeAs(expected);
        for (int i = 0; i < expected.length; i++) {
            assertThat(actual[i]).as("token %d", i).isCloseTo(expected[i], TOLERANCE);
        }
    }

    private static int best(float[] logits) {
        int best = 0;
        for (int i = 1; i < logits.length; i++) {
            best = logits[i] > logits[best] ? i : best;
        }
        return best;
    }

    private static Integer[] boxed(int[] values) {
        return java.util.Arrays.stream(values).boxed().toArray(Integer[]::new);
    }

    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen2", "qwen3"})
    void thePromptsTokensAreThoseOfTransformers(String name) {
        try (ModelFiles files = ModelFiles.open(TestFolders.folder(name))) {
            Tokenizer tokenizer = files.tokenizer();
            for (TestFolders.Answer answer : TestFolders.answers(name)) {
                assertThat(tokenizer.encode(answer.text(), true, true)).isEqualTo(answer.tokens());
            }
        }
    }

    @Test
    void generationEndsAfterTheTokensThatTheFolderNames() {
        assertThat(tokenizer("llama").endOfGeneration()).containsExactly(377, 378);
        assertThat(tokenizer("llama").bos()).hasValue(376);
        assertThat(tokenizer("qwen2").endOfGeneration()).containsExactly(360, 362);
        assertThat(tokenizer("qwen2").bos()).isEmpty();
        assertThat(tokenizer("qwen3").endOfGeneration()).containsExactly(362);
    }

    @Test
    void rowsThatOnlyPadTheEmbeddingStandForNothing() {
        Tokenizer tokenizer = tokenizer("qwen3");
        assertThat(tokenizer.vocabularySize()).isEqualTo(384);
        assertThat(tokenizer.isHidden(383)).isTrue();
        assertThat(tokenizer.decode(383)).isEmpty();
    }

    private static Tokenizer tokenizer(String name) {
        try (ModelFiles files = ModelFiles.open(TestFolders.folder(name))) {
            return files.tokenizer();
        }
    }

    /** Llama's is in tokenizer_config.json, Qwen 3's in a file of its own. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen3"})
    void theChatTemplateIsTheFolders(String name) {
        try (ModelFiles files = ModelFiles.open(TestFolders.folder(name))) {
            Tokenizer tokenizer = files.tokenizer();
            String text =
                    files.chatTemplate(tokenizer)
                            .render(List.of(new ChatMessage("user", "hi")), true);
            assertThat(text).isEqualTo("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
        }
    }
}
