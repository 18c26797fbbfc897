package dev.dormouse.memory;

/** Memory that could not do what it was asked; the message says operation, object and remedy. */
public class MemoryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An error of the memory itself. */
    public MemoryException(String message) {
        super(message);
    }

    /** As {@link #MemoryException(String)}, with its cause. */
    public MemoryException(String message, Throwable cause) {
        super(message, cause);
    }
}
