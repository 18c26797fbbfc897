package dev.dormouse.model;

/**
 * A model that cannot be used: a damaged or unsupported file, or weights that changed under a
 * running engine.
 */
public class ModelException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An error whose message names the object, the value and the remedy. */
    public ModelException(String message) {
        super(message);
    }

    /** As {@link #ModelException(String)}, with its cause. */
    public ModelException(String message, Throwable cause) {
        super(message, cause);
    }
}
