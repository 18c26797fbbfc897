package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.ReferenceData;
import dev.dormouse.model.gguf.GgufException;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.GgufMetadata;
import dev.dormouse.model.gguf.GgufWriter;
import dev.dormouse.testkit.Natives;
import dev.dormouse.testkit.Seeded;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The tokenizer on small made-up vocabularies. */
public final class TokenizerTest {
    @TempDir Path directory;

    /**
     * 256 bytes, then {@code ab}, {@code abc}, {@code <bos>}, {@code <eos>}, {@code [x]}, {@code
     * [x]]}.
     */
    public static GgufWriter smallVocabulary() {
        return vocabulary("gpt-2");
    }

    private static GgufWriter vocabulary(String preTokenizer) {
        List<String> tokens = new ArrayList<>();
        for (int b = 0; b < 256; b++) {
            tokens.add(ByteAlphabet.spell(new byte[] {(byte) b}));
        }
        tokens.addAll(List.of("ab", "abc", "<bos>", "<eos>", "[x]", "[x]]"));
        int[] kinds = IntStream.range(0, tokens.size()).map(i -> 1).toArray();
        kinds[258] = 3;
        kinds[259] = 3;
        kinds[260] = 4;
        kinds[261] = 4;
        return new GgufWriter()
                .string("tokenizer.ggml.model", "gpt2")
                .string("tokenizer.ggml.pre", preTokenizer)
                .strings("tokenizer.ggml.tokens", tokens)
                .int32s("tokenizer.ggml.token_type", kinds)
                .strings("tokenizer.ggml.merges", List.of("a b", "ab c"))
                .uint32("tokenizer.ggml.bos_token_id", 258)
                .uint32("tokenizer.ggml.eos_token_id", 259);
    }

    private Tokenizer open(GgufWriter writer) {
        try (GgufFile file = GgufFile.open(writer.write(directory.resolve("vocab.gguf")))) {
            return Tokenizer.of(file.metadata());
        }
    }

    @Test
    void mergesAndAddsWhatTheFileAsksFor() {
        Tokenizer plain = open(smallVocabulary());
        assertThat(plain.encode("abcab", true, true)).containsExactly(257, 256);
        assertThat(plain.encode("", true, true)).isEmpty();
        Tokenizer both =
                open(
                        smallVocabulary()
                                .bool("tokenizer.ggml.add_bos_token", 1)
                                .bool("tokenizer.ggml.add_eos_token", 1));
        assertThat(both.encode("ab", true, true)).containsExactly(258, 256, 259);
        assertThat(both.encode("ab", false, true)).containsExactly(256);
        assertThat(both.encode("", true, true)).containsExactly(258, 259);
    }

    @Test
    void addsBosByDefaultForLlama3Only() {
        assertThat(open(vocabulary("llama-bpe")).encode("ab", true, true))
                .containsExactly(258, 256);
        assertThat(
                        open(vocabulary("llama-bpe").bool("tokenizer.ggml.add_bos_token", 0))
                                .encode("ab", true, true))
                .containsExactly(256);
        assertThat(open(vocabulary("qwen2")).encode("ab", true, true)).containsExactly(256);
    }

    @Test
    void takesControlTokensForTextUnlessAskedToParseThem() {
        Tokenizer tokenizer = open(smallVocabulary());
        assertThat(tokenizer.encode("ab<eos>ab", true, true)).containsExactly(256, 259, 256);
        int[] text = tokenizer.encode("ab<eos>ab", true, false);
        assertThat(text).hasSize(7).doesNotContain(259);
        assertThat(tokenizer.decode(text)).isEqualTo("ab<eos>ab");
        // User-defined tokens are no commands to the model: they count either way.
        assertThat(tokenizer.encode("a[x]b", true, false)).containsExactly('a', 260, 'b');
        assertThat(tokenizer.encode("[x][x]]]", true, false)).containsExactly(260, 261, ']');
        assertThat(tokenizer.decode(260, 259, 256)).isEqualTo("[x]ab");
    }

    @Test
    void takesNoWholeWordForAControlToken() {
        Tokenizer tokenizer =
                open(
                        new GgufWriter()
                                .string("tokenizer.ggml.model", "gpt2")
                                .string("tokenizer.ggml.pre", "llama-bpe")
                                .bool("tokenizer.ggml.add_bos_token", 0)
                                .strings("tokenizer.ggml.tokens", List.of("a", "b", "ab", "ba"))
                                .int32s("tokenizer.ggml.token_type", 1, 1, 3, 1)
                                .strings("tokenizer.ggml.merges", List.of()));
        assertThat(tokenizer.encode("ab", false, false)).containsExactly(0, 1);
        assertThat(tokenizer.encode("ba", false, false)).containsExactly(3);
        assertThat(tokenizer.encode("ab", false, true)).containsExactly(2);
    }

    @Test
    void namesTheTokensThatEndGeneration() {
        assertThat(open(smallVocabulary()).endOfGeneration()).containsExactly(259);
        assertThat(
                        open(smallVocabulary().uint32("tokenizer.ggml.eot_token_id", 260))
                                .endOfGeneration())
                .containsExactly(259, 260);
    }

    @Test
    void holdsBackUnfinishedCharacters() {
        IncrementalDecoder decoder = open(smallVocabulary()).decoder();
        assertThat(decoder.push('h')).isEqualTo("h");
        assertThat(decoder.push(0xe2)).isEmpty();
        assertThat(decoder.push(0x82)).isEmpty();
        assertThat(decoder.push(0xac)).isEqualTo("€");
        assertThat(decoder.push(0xf0)).isEmpty();
        assertThat(decoder.push(259)).isEmpty();
        assertThat(decoder.push('x')).isEqualTo("\ufffdx");
        assertThat(decoder.push(0xc3)).isEmpty();
        assertThat(decoder.finish()).isEqualTo("\ufffd");
        assertThatThrownBy(() -> decoder.push('x')).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(decoder::finish).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void decodesAnyBytesIncrementallyAsAtOnce() {
        Tokenizer tokenizer = open(smallVocabulary());
        int[] lead = {0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xc3, 0xff, 'a', 0xed, 0xa0, 0xf4};
        Seeded.forAll(
                2_000,
                random -> {
                    int[] tokens =
                            random.ints(random.nextInt(12), 0, lead.length)
                                    .map(i -> lead[i])
                                    .toArray();
                    IncrementalDecoder decoder = tokenizer.decoder();
                    StringBuilder text = new StringBuilder();
                    Arrays.stream(tokens).forEach(t -> text.append(decoder.push(t)));
                    text.append(decoder.finish());
                    assertThat(text.toString()).isEqualTo(tokenizer.decode(tokens));
                });
    }

    @Test
    void replacesUnpairedSurrogates() {
        Tokenizer tokenizer = open(smallVocabulary());
        assertThat(tokenizer.decode(tokenizer.encode("a\ud800b😀\udc00", false, false)))
                .isEqualTo("a\ufffdb😀\ufffd");
    }

    @Test
    void encodesHugeWords() {
        Tokenizer tokenizer = open(smallVocabulary());
        String word = "abc".repeat(200_000);
        int[] tokens = tokenizer.encode(word, false, false);
        assertThat(tokens).hasSize(200_000).containsOnly(257);
    }

    @Test
    void refusesIdsOutsideTheVocabulary() {
        Tokenizer tokenizer = open(smallVocabulary());
        for (int id : new int[] {-1, 262, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> tokenizer.decode(id))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("outside the vocabulary of 262");
            assertThatThrownBy(() -> tokenizer.tokenBytes(id))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> tokenizer.decoder().push(id))
                    .isInstanceOf(IllegalArgumentException.class);
        }
        byte[] bytes = tokenizer.tokenBytes(256);
        bytes[0] = 0;
        assertThat(tokenizer.tokenBytes(256)).isEqualTo(new byte[] {'a', 'b'});
    }

    @Test
    void refusesWhatItDoesNotSupportOrWhatContradictsItself() {
        GgufWriter other = new GgufWriter().string("tokenizer.ggml.model", "llama");
        assertRefused(other, "tokenizer.ggml.model 'llama' is not supported, only 'gpt2'");
        assertRefused(vocabulary("tekken"), "pre-tokenizer 'tekken' is not supported, only [");
        assertRefused(
                smallVocabulary().uint32("tokenizer.ggml.eot_token_id", 262),
                "'tokenizer.ggml.eot_token_id' is 262, outside the vocabulary of 262");
        GgufWriter base =
                new GgufWriter()
                        .string("tokenizer.ggml.model", "gpt2")
                        .string("tokenizer.ggml.pre", "gpt-2");
        assertThatThrownBy(() -> open(base))
                .isInstanceOf(GgufException.class)
                .hasMessageContaining("'tokenizer.ggml.tokens' is missing");
        base.strings("tokenizer.ggml.tokens", List.of("a", "b", "a"));
        assertRefused(base, "tokens 0 and 2 of 'tokenizer.ggml.tokens' are both 'a'");
    }

    @Test
    void refusesMergesWithoutTokensAndMissingBos() {
        GgufWriter merges =
                new GgufWriter()
                        .string("tokenizer.ggml.model", "gpt2")
                        .string("tokenizer.ggml.pre", "llama-bpe")
                        .strings("tokenizer.ggml.tokens", List.of("a", "b", "ab"))
                        .strings("tokenizer.ggml.merges", List.of("a b", "a c"));
        assertRefused(merges, "entry 1 of 'tokenizer.ggml.merges', 'a c'");
        GgufWriter bos =
                new GgufWriter()
                        .string("tokenizer.ggml.model", "gpt2")
                        .string("tokenizer.ggml.pre", "llama-bpe")
                        .strings("tokenizer.ggml.tokens", List.of("a", "b", "ab"))
                        .strings("tokenizer.ggml.merges", List.of("a b"));
        assertRefused(bos, "no id is given");
    }

    private void assertRefused(GgufWriter writer, String message) {
        assertThatThrownBy(() -> open(writer))
                .isInstanceOf(TokenizerException.class)
                .hasMessageContaining(message);
    }

    /** The default model's vocabulary under other names of {@code tokenizer.ggml.pre}. */
    @Test
    void cutsWordsAsLlamaCppDoesForEachPreTokenizer() {
        List<ReferenceData.Encoding> encodings = ReferenceData.encodings();
        Map<String, Map<Integer, List<Integer>>> expected = ReferenceData.preTokenizers();
        assertThat(expected).containsOnlyKeys("gpt-2", "default", "llama-bpe", "qwen2");
        try (GgufFile model = GgufFile.open(Natives.model())) {
            expected.forEach(
                    (name, different) -> {
                        Tokenizer tokenizer = open(copy(model.metadata(), name));
                        for (int i = 0; i < encodings.size(); i++) {
                            String text = encodings.get(i).text();
                            assertThat(
                                            Arrays.stream(tokenizer.encode(text, true, false))
                                                    .boxed()
                                                    .toList())
                                    .as("%s: %s", name, text)
                                    .isEqualTo(different.getOrDefault(i, encodings.get(i).plain()));
                        }
                    });
        }
    }

    private static GgufWriter copy(GgufMetadata metadata, String preTokenizer) {
        int[] kinds =
                Arrays.stream(metadata.integers("tokenizer.ggml.token_type"))
                        .mapToInt(Math::toIntExact)
                        .toArray();
        return new GgufWriter()
                .string("tokenizer.ggml.model", "gpt2")
                .string("tokenizer.ggml.pre", preTokenizer)
                .strings("tokenizer.ggml.tokens", metadata.strings("tokenizer.ggml.tokens"))
                .strings("tokenizer.ggml.merges", metadata.strings("tokenizer.ggml.merges"))
                .int32s("tokenizer.ggml.token_type", kinds)
                .bool("tokenizer.ggml.add_bos_token", 0);
    }
}
