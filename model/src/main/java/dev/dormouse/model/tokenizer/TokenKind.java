package dev.dormouse.model.tokenizer;

/** What a token is for, by the numbers of {@code tokenizer.ggml.token_type}. */
enum TokenKind {
    UNDEFINED,
    NORMAL,
    UNKNOWN,
    CONTROL,
    USER_DEFINED,
    UNUSED,
    BYTE;

    private static final TokenKind[] BY_NUMBER = values();

    /** The kind of that number; llama.cpp takes a number it does not know for undefined. */
    static TokenKind of(long number) {
        return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[(int) number] : UNDEFINED;
    }

    /** Whether the token is recognised in a text before the text is cut into words. */
    boolean isSpecial() {
        return this == CONTROL || this == USER_DEFINED || this == UNKNOWN;
    }
}
