package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Asks the dynamic linker why a library cannot be loaded, which Java's lookup does not tell. */
final class DynamicLoader {
    private static final int RTLD_NOW = 2;
    private static final long MAX_MESSAGE_BYTES = 4096;

    private static final SymbolBinder BINDER = SymbolBinder.ofLibc();

    // void *dlopen(const char *filename, int flags);
    private static final MethodHandle DLOPEN =
            BINDER.function("dlopen", ADDRESS, ADDRESS, JAVA_INT);
    // char *dlerror(void);
    private static final MethodHandle DLERROR = BINDER.function("dlerror", ADDRESS);

    private DynamicLoader() {}

    /** As {@code libcudart.so.12: cannot open shared object file}. */
    static String reason(String file) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle =
                    (MemorySegment) DLOPEN.invokeExact(arena.allocateFrom(file), RTLD_NOW);
            MemorySegment message = (MemorySegment) DLERROR.invokeExact();
            if (handle.address() != 0 || message.address() == 0) {
                return "cannot open " + file;
            }
            return message.reinterpret(MAX_MESSAGE_BYTES).getString(0);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }
}
