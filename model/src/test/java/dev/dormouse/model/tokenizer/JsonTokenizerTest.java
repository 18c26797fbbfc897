package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.TestFolders;
import dev.dormouse.model.json.JsonFields;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files of tokenizers that are not as they should be. */
final class JsonTokenizerTest {
    @TempDir private Path directory;

    private Tokenizer open(String name, Consumer<ObjectNode> change, String config, Long... ends) {
        Path folder =
                TestFolders.copy(name, directory.resolve(name + System.identityHashCode(change)));
        Path file = folder.resolve("tokenizer.json");
        TestFolders.change(file, change);
        byte[] bytes = config.getBytes(StandardCharsets.UTF_8);
        return Tokenizer.of(
                JsonFields.read(file, 1 << 20),
                Optional.of(JsonFields.parse(bytes, "config")),
                List.of(ends),
                512);
    }

    private void assertRefused(String name, Consumer<ObjectNode> change, String message) {
        assertThatThrownBy(() -> open(name, change, "{}"))
                .isInstanceOf(ModelException.class)
                .hasMessageContaining(message);
    }

    private static ObjectNode first(ObjectNode root, String part, String list) {
        return (ObjectNode) root.path(part).path(list).path(0);
    }

    @Test
    void partsOfUnknownTypesAreRefusedByName() {
        assertRefused("qwen2", t -> t.withObject("model").put("type", "Unigram"), "'Unigram'");
        assertRefused("qwen2", t -> t.putObject("normalizer").put("type", "NFKC"), "'NFKC'");
        assertRefused(
                "qwen2",
                t -> first(t, "pre_tokenizer", "pretokenizers").put("type", "Punctuation"),
                "'Punctuation'");
        assertRefused(
                "qwen2",
                t -> t.putObject("pre_tokenizer").put("type", "Whitespace"),
                "[Whitespace]");
        assertRefused(
                "qwen2",
                t -> t.putObject("post_processor").put("type", "BertProcessing"),
                "'BertProcessing'");
        assertRefused("qwen2", t -> t.putObject("decoder").put("type", "WordPiece"), "[WordPiece]");
        assertRefused(
                "qwen2",
                t -> first(t, "pre_tokenizer", "pretokenizers").put("behavior", "Removed"),
                "'Removed'");
        assertRefused(
                "qwen2",
                t ->
                        first(t, "pre_tokenizer", "pretokenizers")
                                .withObject("pattern")
                                .put("Regex", "\\w+"),
                "'\\w+'");
        assertRefused(
                "metaspace", t -> t.withObject("pre_tokenizer").put("split", true), "'Metaspace'");
    }

    @Test
    void addedTokensThatTakeSpacesAreRefused() {
        assertRefused(
                "qwen2",
                t -> ((ObjectNode) t.path("added_tokens").path(0)).put("rstrip", true),
                "'<|endoftext|>'");
    }

    @Test
    void contradictionsAreRefused() {
        assertRefused(
                "qwen2", t -> t.withObject("model").withObject("vocab").put("new", 3), "id 3");
        assertRefused(
                "qwen2", t -> t.withObject("model").withObject("vocab").put("new", 512), "id 512");
        assertRefused(
                "qwen2",
                t -> t.withObject("model").withObject("vocab").put("new", -1),
                "from 0 to");
        assertRefused(
                "qwen2",
                t -> ((ObjectNode) t.path("added_tokens").path(0)).put("id", 1 << 20),
                "id 1048576");
        assertRefused(
                "qwen2",
                t -> ((ObjectNode) t.path("added_tokens").path(0)).put("id", 3),
                "'<|endoftext|>' have the same id 3");
        assertRefused(
                "qwen2",
                t -> t.withObject("model").withArray("merges").add("q Z"),
                "'q Z', is no pair of tokens with a token");
        assertRefused(
                "qwen2", t -> t.withObject("model").withArray("merges").add(7), "array of pairs");
    }

    @Test
    void mergesMayBeWrittenAsOneString() {
        Tokenizer arrays = open("qwen2", t -> {}, "{}");
        Tokenizer strings =
                open(
                        "qwen2",
                        t -> {
                            var merges = t.withObject("model").withArray("merges").deepCopy();
                            var lines = t.withObject("model").putArray("merges");
                            merges.forEach(
                                    pair ->
                                            lines.add(
                                                    pair.path(0).textValue()
                                                            + " "
                                                            + pair.path(1).textValue()));
                        },
                        "{}");
        String text = "The dormouse sleeps, and the engine wakes.";
        assertThat(strings.encode(text, true, true)).isEqualTo(arrays.encode(text, true, true));
    }

    @Test
    void tokensThatTheConfigurationNamesMustBeThere() {
        Tokenizer tokenizer =
                open("qwen2", t -> {}, "{\"eos_token\":{\"content\":\"<|im_end|>\"}}", 360L);
        assertThat(tokenizer.eos()).hasValue(362);
        assertThat(tokenizer.endOfGeneration()).containsExactly(360, 362);
        assertThatThrownBy(() -> open("qwen2", t -> {}, "{\"eos_token\":\"<none>\"}"))
                .isInstanceOf(TokenizerException.class)
                .hasMessageContaining("'eos_token' is '<none>'");
        assertThatThrownBy(() -> open("qwen2", t -> {}, "{}", 512L))
                .isInstanceOf(TokenizerException.class)
                .hasMessageContaining("512");
    }

    @Test
    void controlTokensAreTextWhereTheyAreNotParsed() {
        Tokenizer tokenizer = open("qwen3", t -> {}, "{}");
        assertThat(tokenizer.encode("<|im_end|>", false, true)).containsExactly(362);
        assertThat(tokenizer.encode("<|im_end|>", false, false)).hasSizeGreaterThan(3);
        assertThat(tokenizer.encode("<think>", false, false)).containsExactly(363);
        assertThat(tokenizer.decode(363, 362)).isEqualTo("<think>");
    }
}
