package dev.dormouse.foreign;

/** What to do with the {@link Throwable} that {@code invokeExact} declares. */
public final class Downcall {
    private Downcall() {}

    /**
     * Rethrows what a downcall can really throw, which is unchecked; anything else is a programming
     * error here.
     *
     * <p>To be used as {@code throw Downcall.rethrow(t)}, so that the compiler sees the end of the
     * path.
     */
    public static AssertionError rethrow(Throwable thrown) {
        if (thrown instanceof RuntimeException runtime) {
            throw runtime;
        }
        if (thrown instanceof Error error) {
            throw error;
        }
        return new AssertionError("a downcall threw a checked exception", thrown);
    }
}
