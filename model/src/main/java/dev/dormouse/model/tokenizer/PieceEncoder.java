package dev.dormouse.model.tokenizer;

/** Turns what lies between the special tokens of a text into tokens. */
interface PieceEncoder {
    /**
     * Appends the tokens of a piece.
     *
     * @param first whether the text begins with it
     */
    void encode(String piece, boolean first, IntList tokens);
}
