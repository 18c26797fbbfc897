package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.TestFolders;
import dev.dormouse.model.json.JsonFields;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Vocabularies of {@code tokenizer.json} against the ids that Hugging Face's tokenizers gave. */
final class JsonTokenizerReferenceTest {
    private static Tokenizer open(String name) {
        JsonFields file =
                JsonFields.read(TestFolders.folder(name).resolve("tokenizer.json"), 1 << 20);
        return Tokenizer.of(file, Optional.empty(), List.of(), 512);
    }

    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen2", "qwen3", "smollm", "llama2", "metaspace"})
    void givesTheSameIds(String name) {
        Tokenizer tokenizer = open(name);
        for (TestFolders.Encoding encoding : TestFolders.encodings(name)) {
            assertThat(tokenizer.encode(encoding.text(), true, true))
                    .as(encoding.text())
                    .isEqualTo(encoding.ids());
            assertThat(tokenizer.encode(encoding.text(), false, true))
                    .as(encoding.text())
                    .isEqualTo(encoding.bare());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen2", "qwen3", "smollm", "llama2", "metaspace"})
    void decodesToTheSameText(String name) {
        Tokenizer tokenizer = open(name);
        boolean spaced = name.equals("llama2") || name.equals("metaspace");
        for (TestFolders.Encoding encoding : TestFolders.encodings(name)) {
            String text = tokenizer.decode(encoding.ids());
            // Where the first word has a space put before it, theirs takes it away again.
            String comparable = spaced && text.startsWith(" ") ? text.substring(1) : text;
            // Theirs decodes the letters of an added token as if they spelled bytes.
            String expected = encoding.decoded().replace("caf\ufffds", "caf\u00e9s");
            assertThat(comparable).as(encoding.text()).isEqualTo(expected);
        }
    }
}
