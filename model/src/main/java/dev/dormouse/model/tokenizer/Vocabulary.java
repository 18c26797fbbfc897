package dev.dormouse.model.tokenizer;

import dev.dormouse.model.gguf.GgufMetadata;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The tokens of a model: spelling, kind and bytes by id. */
final class Vocabulary {
    private static final String TOKENS = "tokenizer.ggml.tokens";
    private static final String KINDS = "tokenizer.ggml.token_type";

    private final List<String> texts;
    private final TokenKind[] kinds;
    private final byte[][] bytes;
    private final Map<String, Integer> ids;

    /**
     * Tokens by id.
     *
     * @param bytes what each one stands for
     * @param ids the tokens that {@link #id} finds
     */
    Vocabulary(List<String> texts, TokenKind[] kinds, byte[][] bytes, Map<String, Integer> ids) {
        this.texts = texts;
        this.kinds = kinds;
        this.bytes = bytes;
        this.ids = ids;
    }

    /** The vocabulary of a GGUF file. */
    static Vocabulary of(GgufMetadata metadata) {
        List<String> texts = metadata.strings(TOKENS);
        if (texts.isEmpty()) {
            throw new TokenizerException("load tokenizer: '" + TOKENS + "' has no tokens");
        }
        TokenKind[] kinds = kinds(metadata, texts.size());
        byte[][] bytes = new byte[texts.size()][];
        Map<String, Integer> ids = HashMap.newHashMap(texts.size());
        for (int id = 0; id < texts.size(); id++) {
            String text = texts.get(id);
            bytes[id] = bytes(text, kinds[id]);
            @Nullable Integer earlier = text.isEmpty() ? null : ids.putIfAbsent(text, id);
            if (earlier != null) {
                throw new TokenizerException(
                        "load tokenizer: tokens %d and %d of '%s' are both '%s'"
                                .formatted(earlier, id, TOKENS, text));
            }
        }
        return new Vocabulary(texts, kinds, bytes, ids);
    }

    private static TokenKind[] kinds(GgufMetadata metadata, int size) {
        TokenKind[] kinds = new TokenKind[size];
        if (!metadata.keys().contains(KINDS)) {
            Arrays.fill(kinds, TokenKind.NORMAL);
            return kinds;
        }
        long[] numbers = metadata.integers(KINDS);
        if (numbers.length != size) {
            throw new TokenizerException(
                    "load tokenizer: '%s' has %d entries for %d tokens"
                            .formatted(KINDS, numbers.length, size));
        }
        for (int id = 0; id < size; id++) {
            kinds[id] = TokenKind.of(numbers[id]);
        }
        return kinds;
    }

    private static byte[] bytes(String text, TokenKind kind) {
        byte @Nullable [] spelled = kind == TokenKind.NORMAL ? ByteAlphabet.bytes(text) : null;
        return spelled != null ? spelled : text.getBytes(StandardCharsets.UTF_8);
    }

    int size() {
        return texts.size();
    }

    String text(int id) {
        return texts.get(id);
    }

    TokenKind kind(int id) {
        return kinds[id];
    }

    /** The bytes that the token stands for; the caller must not change them. */
    byte[] bytes(int id) {
        return bytes[id];
    }

    /** The token of that spelling, or −1. */
    int id(String text) {
        return ids.getOrDefault(text, -1);
    }
}
