package dev.dormouse.cuda;

import dev.dormouse.foreign.Downcall;

/** One downcall that returns a status code. */
@FunctionalInterface
interface NativeCall {
    int invoke() throws Throwable;

    /** Makes the call and returns its status. */
    default int status() {
        try {
            return invoke();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
