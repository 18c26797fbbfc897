package dev.dormouse.model;

import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.folder.ModelFolder;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A model's open files: a GGUF file, or a folder as Hugging Face's hub has it.
 *
 * <p>They stay open as long as weights may be loaded. Safe from any thread.
 */
public interface ModelFiles extends AutoCloseable {
    /**
     * Opens what is there: a folder, or else a GGUF file.
     *
     * @throws ModelException when it cannot be read, is malformed, or holds a model of an
     *     unsupported kind
     */
    static ModelFiles open(Path path) {
        return Files.isDirectory(path)
                ? ModelFolder.open(path)
                : new GgufModelFile(GgufFile.open(path));
    }

    /** Opens the model for one rank; see {@link #openModel(int, int)}. */
    default LlamaModel openModel(int threads) {
        return openModel(threads, 1);
    }

    /**
     * Opens the model.
     *
     * @param threads that compute, the one that calls {@link LanguageModel#forward} among them
     * @param ranks tensor parallel ranks
     * @throws ModelException when the model is of an unsupported kind
     * @throws IllegalArgumentException when the model cannot be dealt to that many ranks
     */
    LlamaModel openModel(int threads, int ranks);

    /**
     * Reads the tokenizer.
     *
     * @throws ModelException when it is malformed or of an unsupported kind
     */
    Tokenizer tokenizer();

    /**
     * Reads the chat template.
     *
     * @param tokenizer of the same files
     * @throws ModelException when the template cannot be parsed or uses what is not supported
     */
    ChatTemplate chatTemplate(Tokenizer tokenizer);

    /** Closes the files. Idempotent. */
    @Override
    void close();
}
