package dev.dormouse.model.tokenizer;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Finds the tokens that stand for themselves in a text, such as {@code <|im_end|>}. */
final class SpecialTokens {
    /** A token found at {@code start}. */
    record Match(int start, int length, int token) {}

    /**
     * A token that stands for itself.
     *
     * @param always whether it does so also where control tokens are plain text
     */
    record Entry(String text, int token, boolean always) {}

    /** None at all. */
    static final SpecialTokens NONE = new SpecialTokens(List.of());

    private final Map<Character, List<Entry>> byFirstChar = new HashMap<>();

    SpecialTokens(List<Entry> entries) {
        for (Entry entry : entries) {
            byFirstChar.computeIfAbsent(entry.text.charAt(0), c -> new ArrayList<>()).add(entry);
        }
        byFirstChar
                .values()
                .forEach(l -> l.sort(Comparator.comparingInt((Entry e) -> -e.text.length())));
    }

    /** Those that a vocabulary's kinds tell. */
    static SpecialTokens of(Vocabulary vocabulary) {
        List<Entry> entries = new ArrayList<>();
        for (int id = 0; id < vocabulary.size(); id++) {
            TokenKind kind = vocabulary.kind(id);
            String text = vocabulary.text(id);
            if (kind.isSpecial() && !text.isEmpty()) {
                entries.add(new Entry(text, id, kind == TokenKind.USER_DEFINED));
            }
        }
        return new SpecialTokens(entries);
    }

    /**
     * The leftmost special token at or after {@code from}, the longest one there, or null.
     *
     * @param all whether control tokens count too, or only user-defined ones, which always do
     */
    @Nullable Match find(String text, int from, boolean all) {
        if (byFirstChar.isEmpty()) {
            return null;
        }
        for (int i = from; i < text.length(); i++) {
            @Nullable List<Entry> entries = byFirstChar.get(text.charAt(i));
            if (entries == null) {
                continue;
            }
            for (Entry entry : entries) {
                if ((all || entry.always) && text.startsWith(entry.text, i)) {
                    return new Match(i, entry.text.length(), entry.token);
                }
            }
        }
        return null;
    }
}
