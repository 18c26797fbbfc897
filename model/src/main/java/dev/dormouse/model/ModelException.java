package dev.dormouse.model;

/** Base of all failures that this module reports about a model file, a tokenizer or a model. */
public class ModelException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** A failure told by its message alone. */
    public ModelException(String message) {
        super(message);
    }

    /** A failure with the lower one that caused it. */
    public ModelException(String message, Throwable cause) {
        super(message, cause);
    }
}
