package dev.dormouse.model.tokenizer;

/**
 * What is written for symbols without a token.
 *
 * @param token −1 to leave them out
 * @param fused whether symbols in a row give one token
 */
record UnknownToken(int token, boolean fused) {
    static final UnknownToken NONE = new UnknownToken(-1, false);

    /** Appends merged ids, with this token for those that are −1. */
    void append(int[] ids, int count, IntList tokens) {
        for (int i = 0; i < count; i++) {
            if (ids[i] >= 0) {
                tokens.add(ids[i]);
            } else if (token >= 0 && !(fused && i > 0 && ids[i - 1] < 0)) {
                tokens.add(token);
            }
        }
    }
}
