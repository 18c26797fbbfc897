package dev.dormouse.foreign;

/** Base of every failure that this module reports. */
public class NativeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    NativeException(String message) {
        super(message);
    }
}
