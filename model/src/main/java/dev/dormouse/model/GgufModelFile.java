package dev.dormouse.model;

import dev.dormouse.model.chat.ChatTemplate;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;

/** A model that is one GGUF file. */
record GgufModelFile(GgufFile file) implements ModelFiles {
    @Override
    public LlamaModel openModel(int threads, int ranks) {
        return LlamaModel.open(file, threads, ranks);
    }

    @Override
    public Tokenizer tokenizer() {
        return Tokenizer.of(file.metadata());
    }

    @Override
    public ChatTemplate chatTemplate(Tokenizer tokenizer) {
        return ChatTemplate.of(file.metadata(), tokenizer);
    }

    @Override
    public void close() {
        file.close();
    }
}
