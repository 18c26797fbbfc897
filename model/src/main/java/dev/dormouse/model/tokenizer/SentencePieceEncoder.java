package dev.dormouse.model.tokenizer;

import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * BPE over characters, with spaces written as U+2581, as {@code tokenizer.json} files made from
 * SentencePiece models have it.
 */
final class SentencePieceEncoder implements PieceEncoder {
    static final char SPACE = '\u2581';

    /** Where a space is put before a piece. */
    enum Prefix {
        NONE,
        /** Before each piece. */
        ALWAYS,
        /** Before each piece that does not begin with one. */
        UNLESS_THERE,
        /** Before the piece that begins the text, if it does not begin with one. */
        FIRST_UNLESS_THERE
    }

    private final Vocabulary vocabulary;
    private final PairMerges merges;
    private final Prefix prefix;
    private final UnknownToken unknown;
    private final int[] byteTokens = new int[256];

    /**
     * @param fallsBackToBytes whether a character without a token becomes the tokens of its bytes
     * @param unknown for a character without either
     */
    SentencePieceEncoder(
            Vocabulary vocabulary,
            PairMerges merges,
            Prefix prefix,
            boolean fallsBackToBytes,
            UnknownToken unknown) {
        this.vocabulary = vocabulary;
        this.merges = merges;
        this.prefix = prefix;
        this.unknown = unknown;
        for (int b = 0; b < 256; b++) {
            byteTokens[b] = fallsBackToBytes ? vocabulary.id(byteName(b)) : -1;
        }
    }

    /** How a vocabulary names the token of a byte. */
    static String byteName(int value) {
        return String.format(Locale.ROOT, "<0x%02X>", value);
    }

    @Override
    public void encode(String piece, boolean first, IntList tokens) {
        if (piece.isEmpty()) {
            return;
        }
        String spaced = piece.replace(' ', SPACE);
        boolean there = spaced.charAt(0) == SPACE;
        boolean prefixed =
                switch (prefix) {
                    case NONE -> false;
                    case ALWAYS -> true;
                    case UNLESS_THERE -> !there;
                    case FIRST_UNLESS_THERE -> first && !there;
                };
        IntList symbols = new IntList();
        if (prefixed) {
            addSymbol(SPACE, symbols);
        }
        spaced.codePoints().forEach(character -> addSymbol(character, symbols));
        int[] ids = symbols.toArray();
        unknown.append(ids, merges.merge(ids), tokens);
    }

    private void addSymbol(int character, IntList symbols) {
        String text = Character.toString(character);
        int id = vocabulary.id(text);
        if (id >= 0) {
            symbols.add(id);
            return;
        }
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int[] ids = new int[bytes.length];
        boolean all = true;
        for (int i = 0; i < bytes.length; i++) {
            ids[i] = byteTokens[bytes[i] & 0xff];
            all &= ids[i] >= 0;
        }
        symbols.addAll(all ? ids : new int[] {-1});
    }
}
