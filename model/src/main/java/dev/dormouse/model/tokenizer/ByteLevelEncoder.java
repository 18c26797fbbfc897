package dev.dormouse.model.tokenizer;

import java.nio.charset.StandardCharsets;

/** Byte-level BPE: the bytes of each word are merged by rank. */
final class ByteLevelEncoder implements PieceEncoder {
    private final Vocabulary vocabulary;
    private final PreTokenizer preTokenizer;
    private final PairMerges merges;
    private final boolean prefersWholeWords;
    private final UnknownToken unknown;
    private final int[] byteTokens = new int[256];

    /**
     * @param prefersWholeWords whether a word that is a token as a whole is taken as one, whatever
     *     the merges say
     * @param unknown for a byte without a token
     */
    ByteLevelEncoder(
            Vocabulary vocabulary,
            PreTokenizer preTokenizer,
            PairMerges merges,
            boolean prefersWholeWords,
            UnknownToken unknown) {
        this.vocabulary = vocabulary;
        this.preTokenizer = preTokenizer;
        this.merges = merges;
        this.prefersWholeWords = prefersWholeWords;
        this.unknown = unknown;
        for (int b = 0; b < 256; b++) {
            byteTokens[b] = vocabulary.id(ByteAlphabet.spell(new byte[] {(byte) b}));
        }
    }

    @Override
    public void encode(String piece, boolean first, IntList tokens) {
        preTokenizer.split(piece, word -> encodeWord(word, tokens));
    }

    private void encodeWord(String word, IntList tokens) {
        byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
        if (prefersWholeWords) {
            int whole = vocabulary.id(ByteAlphabet.spell(bytes));
            if (whole >= 0 && vocabulary.kind(whole) == TokenKind.NORMAL) {
                tokens.add(whole);
                return;
            }
        }
        int[] ids = new int[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            ids[i] = byteTokens[bytes[i] & 0xff];
        }
        unknown.append(ids, merges.merge(ids), tokens);
    }
}
