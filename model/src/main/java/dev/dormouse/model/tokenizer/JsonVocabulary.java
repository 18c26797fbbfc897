package dev.dormouse.model.tokenizer;

import dev.dormouse.model.json.JsonFields;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The vocabulary of {@code tokenizer.json}: the model's tokens, and those that were added and stand
 * for themselves in a text.
 *
 * <p>Added tokens that are marked special are control tokens, the others count in every text. Ids
 * that have no token, as of rows that only pad an embedding, stand for nothing.
 */
final class JsonVocabulary {
    private static final int MAX_TOKENS = 1 << 24;

    private record Added(int id, String text, boolean special, boolean normalized) {}

    private final List<Added> added = new ArrayList<>();
    private final Map<String, Integer> addedIds = new HashMap<>();
    private final Vocabulary vocabulary;

    /**
     * @param byteLevel whether tokens spell bytes
     * @param size how many ids there are
     */
    JsonVocabulary(JsonFields file, boolean byteLevel, int size) {
        if (size > MAX_TOKENS) {
            throw new TokenizerException(
                    "load tokenizer: a vocabulary of %d, the limit is %d"
                            .formatted(size, MAX_TOKENS));
        }
        String[] texts = new String[size];
        TokenKind[] kinds = new TokenKind[size];
        byte[][] bytes = new byte[size][];
        Arrays.fill(texts, "");
        Arrays.fill(kinds, TokenKind.UNUSED);
        Arrays.fill(bytes, new byte[0]);
        JsonFields model = file.object("model");
        JsonFields spelled = model.object("vocab");
        boolean namesBytes = model.bool("byte_fallback", false);
        Map<String, Integer> ids = new LinkedHashMap<>();
        for (String text : spelled.names()) {
            int id = checked(spelled.natural(text), size, text);
            if (kinds[id] != TokenKind.UNUSED) {
                throw sameId(texts[id], text, id);
            }
            texts[id] = text;
            kinds[id] = TokenKind.NORMAL;
            bytes[id] = byteLevel ? spelledBytes(text) : pieceBytes(text, namesBytes);
            ids.put(text, id);
        }
        for (JsonFields fields : file.objects("added_tokens")) {
            Added token = added(fields, size);
            if (kinds[token.id] != TokenKind.UNUSED && !texts[token.id].equals(token.text)) {
                throw sameId(texts[token.id], token.text, token.id);
            }
            added.add(token);
            addedIds.put(token.text, token.id);
            texts[token.id] = token.text;
            kinds[token.id] = token.special ? TokenKind.CONTROL : TokenKind.USER_DEFINED;
            bytes[token.id] = token.text.getBytes(StandardCharsets.UTF_8);
        }
        vocabulary = new Vocabulary(List.of(texts), kinds, bytes, ids);
    }

    private static TokenizerException sameId(String first, String second, int id) {
        return new TokenizerException(
                "load tokenizer: tokens '%s' and '%s' have the same id %d"
                        .formatted(first, second, id));
    }

    private static Added added(JsonFields fields, int size) {
        String text = fields.string("content");
        if (text.isEmpty()
                || fields.bool("lstrip", false)
                || fields.bool("rstrip", false)
                || fields.bool("single_word", false)) {
            throw JsonSteps.refused(
                    "an added token '"
                            + text
                            + "' that is empty, or with 'lstrip', 'rstrip' or 'single_word'",
                    "without");
        }
        boolean special = fields.bool("special", false);
        int id = checked(fields.natural("id"), size, text);
        return new Added(id, text, special, fields.bool("normalized", !special));
    }

    private static byte[] spelledBytes(String text) {
        byte @Nullable [] bytes = ByteAlphabet.bytes(text);
        return bytes != null ? bytes : text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] pieceBytes(String text, boolean namesBytes) {
        if (namesBytes && text.matches("<0x[0-9A-F]{2}>")) {
            return new byte[] {(byte) Integer.parseInt(text.substring(3, 5), 16)};
        }
        return text.replace(SentencePieceEncoder.SPACE, ' ').getBytes(StandardCharsets.UTF_8);
    }

    Vocabulary vocabulary() {
        return vocabulary;
    }

    /** The token of that spelling, which {@code field} names. */
    int id(String text, String field) {
        int id = addedIds.getOrDefault(text, vocabulary.id(text));
        if (id < 0) {
            throw new TokenizerException(
                    "load tokenizer: '%s' is '%s', which is no token".formatted(field, text));
        }
        return id;
    }

    /** An id that {@code field} names. */
    int checked(long id, String field) {
        return checked(id, vocabulary.size(), field);
    }

    private static int checked(long id, int size, String text) {
        if (id >= size) {
            throw new TokenizerException(
                    "load tokenizer: '%s' has id %d, but the model has only %d"
                            .formatted(text, id, size));
        }
        return (int) id;
    }

    /**
     * The added tokens that are found in a text as it is.
     *
     * @param all or only those that are not to be normalised
     */
    SpecialTokens specials(boolean all) {
        return new SpecialTokens(
                added.stream()
                        .filter(token -> all || !token.normalized)
                        .map(token -> new SpecialTokens.Entry(token.text, token.id, !token.special))
                        .toList());
    }

    /** The added tokens that are found in a text when it is normalised, as they are. */
    SpecialTokens laterSpecials(JsonNormalizer normalizer) {
        return new SpecialTokens(
                added.stream()
                        .filter(Added::normalized)
                        .map(
                                token ->
                                        new SpecialTokens.Entry(
                                                normalizer.apply(token.text),
                                                token.id,
                                                !token.special))
                        .toList());
    }
}
