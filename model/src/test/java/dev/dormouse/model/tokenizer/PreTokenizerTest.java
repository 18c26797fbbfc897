package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PreTokenizerTest {
    private static List<String> split(String name, String text) {
        List<String> words = new ArrayList<>();
        PreTokenizer.named(name).split(text, words::add);
        return words;
    }

    @Test
    void groupsDigitsAsEachModelWasTrained() {
        assertThat(split("gpt-2", "x 12345")).containsExactly("x", " 12345");
        assertThat(split("smollm", "x 123")).containsExactly("x", " ", "1", "2", "3");
        assertThat(split("llama-bpe", "x 12345")).containsExactly("x", " ", "123", "45");
        assertThat(split("qwen2", "x 123")).containsExactly("x", " ", "1", "2", "3");
        assertThat(split("default", "x 12345")).containsExactly("x", " ", "123", "45");
    }

    @Test
    void treatsContractionsAndLineEndsDifferently() {
        assertThat(split("gpt-2", "it's IT'S")).containsExactly("it", "'s", " IT", "'", "S");
        assertThat(split("llama-bpe", "it's IT'S")).containsExactly("it", "'s", " IT", "'S");
        assertThat(split("gpt-2", "a!\n\n b")).containsExactly("a", "!", "\n\n", " b");
        assertThat(split("qwen2", "a!\n\n b")).containsExactly("a", "!\n\n", " b");
        assertThat(split("smollm", "  \n  b")).containsExactly("  \n ", " b");
    }

    @ParameterizedTest
    @ValueSource(strings = {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"})
    void losesNothing(String name) {
        String alphabet = "aB1 \t\n'sl.!é😀字½\u00a0\u3000";
        int[] characters = alphabet.codePoints().toArray();
        Seeded.forAll(
                500,
                random -> {
                    StringBuilder text = new StringBuilder();
                    int length = random.nextInt(20);
                    for (int i = 0; i < length; i++) {
                        text.appendCodePoint(characters[random.nextInt(characters.length)]);
                    }
                    List<String> words = split(name, text.toString());
                    assertThat(String.join("", words)).isEqualTo(text.toString());
                    assertThat(words).doesNotContain("");
                });
    }

    @Test
    void takesLongRunsWithoutDeepRecursion() {
        for (String piece : List.of("a", " ", "\n", "!", "1", "é", " \n")) {
            String text = piece.repeat(200_000);
            for (String name : List.of("gpt-2", "smollm", "llama-bpe", "qwen2", "default")) {
                assertThat(String.join("", split(name, text))).hasSameSizeAs(text);
            }
        }
    }
}
