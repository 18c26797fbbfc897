package dev.dormouse.foreign;

/** A libc call failed; the message names the call, its values and the error. */
public final class LibcException extends NativeException {
    private static final long serialVersionUID = 1;

    private final String operation;
    private final int errno;

    LibcException(String operation, String values, int errno) {
        super(operation + " failed: " + values + ": " + Errno.describe(errno));
        this.operation = operation;
        this.errno = errno;
    }

    /** The libc function, as {@code mmap}. */
    public String operation() {
        return operation;
    }

    /** The value of {@code errno} right after the call. */
    public int errno() {
        return errno;
    }

    /** The symbolic name of {@link #errno()}, as {@code ENOMEM}, or {@code errno 123}. */
    public String errnoName() {
        return Errno.name(errno);
    }
}
