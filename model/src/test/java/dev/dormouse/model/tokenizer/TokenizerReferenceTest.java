package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.ReferenceData;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.testkit.Natives;
import dev.dormouse.testkit.Seeded;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The default model's tokenizer against the ids that llama.cpp gave. */
final class TokenizerReferenceTest {
    private static Tokenizer tokenizer;

    @BeforeAll
    static void open() {
        try (GgufFile file = GgufFile.open(Natives.model())) {
            tokenizer = Tokenizer.of(file.metadata());
        }
    }

    private static List<Integer> encode(String text, boolean parseSpecial) {
        return Arrays.stream(tokenizer.encode(text, true, parseSpecial)).boxed().toList();
    }

    private static int[] array(List<Integer> values) {
        return values.stream().mapToInt(Integer::intValue).toArray();
    }

    @Test
    void givesTheSameIds() {
        List<ReferenceData.Encoding> encodings = ReferenceData.encodings();
        assertThat(encodings).hasSizeGreaterThan(300);
        for (ReferenceData.Encoding encoding : encodings) {
            assertThat(encode(encoding.text(), false))
                    .as(encoding.text())
                    .isEqualTo(encoding.plain());
            assertThat(encode(encoding.text(), true))
                    .as(encoding.text())
                    .isEqualTo(encoding.special());
        }
    }

    @Test
    void givesTheSameIdsForThePrompts() {
        for (ReferenceData.Prompt prompt : ReferenceData.prompts()) {
            assertThat(encode(prompt.text(), prompt.parseSpecial()))
                    .as(prompt.name())
                    .isEqualTo(prompt.tokens());
        }
    }

    @Test
    void decodesToTheSameText() {
        for (ReferenceData.Encoding encoding : ReferenceData.encodings()) {
            // This vocabulary has no tokens for the bytes 04 and F1, which are left out.
            String text = encoding.text().replaceAll("\u0004", "");
            text = text.replaceAll("\\x{50000}", "\ufffd");
            assertThat(tokenizer.decode(array(encoding.plain())).replaceAll("\ufffd+", "\ufffd"))
                    .isEqualTo(text);
        }
    }

    @Test
    void decodesTokenByTokenToTheSameTextAsAtOnce() {
        Seeded.forAll(
                500,
                random -> {
                    int[] tokens =
                            random.ints(random.nextInt(60), 0, tokenizer.vocabularySize())
                                    .toArray();
                    IncrementalDecoder decoder = tokenizer.decoder();
                    StringBuilder text = new StringBuilder();
                    for (int token : tokens) {
                        text.append(decoder.push(token));
                    }
                    text.append(decoder.finish());
                    assertThat(text.toString()).isEqualTo(tokenizer.decode(tokens));
                });
    }

    @Test
    void knowsTheTokensThatEndATurn() {
        assertThat(tokenizer.vocabularySize()).isEqualTo(49_152);
        assertThat(tokenizer.bos()).hasValue(1);
        assertThat(tokenizer.eos()).hasValue(2);
        assertThat(tokenizer.endOfGeneration()).containsExactly(0, 2);
        assertThat(tokenizer.isEndOfGeneration(2)).isTrue();
        assertThat(tokenizer.isEndOfGeneration(1)).isFalse();
    }

    @Test
    void hidesControlTokensButTellsTheirSpelling() {
        int[] tokens = tokenizer.encode("<|im_start|>user\nhi<|im_end|>", true, true);
        assertThat(tokenizer.decode(tokens)).isEqualTo("user\nhi");
        assertThat(tokens).startsWith(1).endsWith(2);
        assertThat(tokenizer.isHidden(2)).isTrue();
        assertThat(tokenizer.tokenBytes(2)).asString().isEqualTo("<|im_end|>");
        assertThat(IntStream.of(tokens).skip(1).limit(3).noneMatch(tokenizer::isHidden)).isTrue();
    }
}
