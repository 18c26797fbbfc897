package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Native memory that one agent's calls use over and over: out-parameters, and buffers that grow to
 * the largest transfer seen. Guarded by the agent's lock; what a call leaves here is valid until
 * the next.
 */
final class Scratch implements AutoCloseable {
    private static final int FIRST_BUFFER_BYTES = 4096;

    /** Out-parameters, by the C type. */
    final MemorySegment pointer;

    final MemorySegment secondPointer;
    final MemorySegment size;
    final MemorySegment flag;
    final MemorySegment number;

    private final Arena arena = Arena.ofShared();
    private final Buffer first = new Buffer();
    private final Buffer second = new Buffer();

    Scratch() {
        pointer = arena.allocate(ADDRESS);
        secondPointer = arena.allocate(ADDRESS);
        size = arena.allocate(JAVA_LONG);
        flag = arena.allocate(JAVA_BOOLEAN);
        number = arena.allocate(JAVA_INT);
    }

    /** The pointer that the last call wrote. */
    MemorySegment pointerValue() {
        return pointer.get(ADDRESS, 0);
    }

    /** The size that the last call wrote. */
    long sizeValue() {
        return size.get(JAVA_LONG, 0);
    }

    /** The bytes that the last call's pointer and size denote, copied. */
    byte[] bytesValue() {
        return pointerValue().reinterpret(sizeValue()).toArray(JAVA_BYTE);
    }

    /** A native copy, in the first of two buffers. */
    MemorySegment copyFirst(int[] values) {
        return copy(first, values);
    }

    /** A native copy, in the second of two buffers. */
    MemorySegment copySecond(int[] values) {
        return copy(second, values);
    }

    /** A native copy, in the first of two buffers. */
    MemorySegment copyFirst(byte[] values) {
        MemorySegment target = first.ofAtLeast(values.length);
        MemorySegment.copy(values, 0, target, JAVA_BYTE, 0, values.length);
        return target;
    }

    @Override
    public void close() {
        first.close();
        second.close();
        arena.close();
    }

    private static MemorySegment copy(Buffer buffer, int[] values) {
        MemorySegment target = buffer.ofAtLeast((long) values.length * Integer.BYTES);
        MemorySegment.copy(values, 0, target, JAVA_INT, 0, values.length);
        return target;
    }

    /** Native memory with its own arena, so that it can be replaced by more. */
    private static final class Buffer {
        private Arena arena = Arena.ofShared();
        private MemorySegment memory = arena.allocate(FIRST_BUFFER_BYTES, Long.BYTES);

        @SuppressWarnings("MustBeClosedChecker") // the new arena replaces the closed one
        MemorySegment ofAtLeast(long bytes) {
            if (memory.byteSize() < bytes) {
                arena.close();
                arena = Arena.ofShared();
                memory = arena.allocate(Math.max(bytes, 2 * memory.byteSize()), Long.BYTES);
            }
            return memory;
        }

        void close() {
            arena.close();
        }
    }
}
