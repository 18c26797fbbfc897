package dev.dormouse.foreign;

/**
 * A native library, or a part of it, is not there. The message lists everything that was tried or
 * is missing, and ends with the remedy.
 */
public final class NativeLibraryException extends NativeException {
    private static final long serialVersionUID = 1;

    NativeLibraryException(String message) {
        super(message);
    }
}
