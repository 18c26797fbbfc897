package dev.dormouse.model.gguf;

import dev.dormouse.model.ModelException;

/** A GGUF file is malformed, truncated, unreadable, or lacks what was asked of it. */
public final class GgufException extends ModelException {
    private static final long serialVersionUID = 1L;

    /** A failure told by its message alone. */
    public GgufException(String message) {
        super(message);
    }

    /** A failure with the lower one that caused it. */
    public GgufException(String message, Throwable cause) {
        super(message, cause);
    }
}
