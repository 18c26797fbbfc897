package dev.dormouse.foreign;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.VarHandle;

/** Where one downcall leaves {@code errno}, before the JVM can overwrite it. */
final class CapturedErrno {
    static final Linker.Option OPTION = Linker.Option.captureCallState("errno");

    private static final StructLayout LAYOUT = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO =
            LAYOUT.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    private CapturedErrno() {}

    static MemorySegment allocate(Arena arena) {
        return arena.allocate(LAYOUT);
    }

    static int read(MemorySegment captured) {
        return (int) ERRNO.get(captured, 0L);
    }
}
