package dev.dormouse.model.tokenizer;

import dev.dormouse.model.ModelException;

/** A model's tokenizer metadata is contradictory or of a kind that is not supported. */
public final class TokenizerException extends ModelException {
    private static final long serialVersionUID = 1L;

    /** A failure told by its message alone. */
    public TokenizerException(String message) {
        super(message);
    }
}
