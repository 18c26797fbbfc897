package dev.dormouse.transport;

/**
 * A peer was not loaded, since it does not give the memory that its metadata name: it takes it back
 * just now, as before a sleep, or has not got it any more. Another way there would lead to the same
 * pages, so none must be tried; its newest metadata say what it gives.
 */
public final class MemoryWithdrawnException extends TransportException {
    private static final long serialVersionUID = 1L;

    /** What the peer said. */
    public MemoryWithdrawnException(String message) {
        super(message);
    }
}
