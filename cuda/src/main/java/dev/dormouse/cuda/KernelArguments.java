package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of a launch, in the order of the kernel's parameters; a launch checks number and
 * sizes. Can be used again. Not thread-safe.
 */
public final class KernelArguments {
    private static final int MAX_ARGUMENTS = 64;

    private final long[] values = new long[MAX_ARGUMENTS];
    private final int[] sizes = new int[MAX_ARGUMENTS];
    private final @Nullable MemorySegment[] structs = new MemorySegment[MAX_ARGUMENTS];
    private int count;

    /** For a pointer. */
    public KernelArguments address(DeviceSpan span) {
        return add(span.address(), Long.BYTES);
    }

    /** For {@code int} or {@code unsigned}. */
    public KernelArguments int32(int value) {
        return add(value, Integer.BYTES);
    }

    /** For {@code long long}, {@code unsigned long long} or {@code size_t}. */
    public KernelArguments int64(long value) {
        return add(value, Long.BYTES);
    }

    /** For {@code float}. */
    public KernelArguments float32(float value) {
        return add(Float.floatToRawIntBits(value), Float.BYTES);
    }

    /**
     * For a struct that is passed by value.
     *
     * @param bytes native memory as long as the struct, which a launch reads before it returns; not
     *     to be closed meanwhile
     */
    public KernelArguments struct(MemorySegment bytes) {
        if (!bytes.isNative()) {
            throw new IllegalArgumentException("a struct must lie in native memory: " + bytes);
        }
        KernelArguments added = add(bytes.address(), Math.toIntExact(bytes.byteSize()));
        structs[count - 1] = bytes;
        return added;
    }

    /** The size of each, in bytes. */
    int[] sizes() {
        return Arrays.copyOf(sizes, count);
    }

    /** The array of pointers to values that {@code cuLaunchKernel} reads before it returns. */
    MemorySegment pointers(Arena arena) {
        MemorySegment pointers = arena.allocate(ADDRESS, Math.max(count, 1));
        MemorySegment slots = arena.allocate(JAVA_LONG, Math.max(count, 1));
        for (int i = 0; i < count; i++) {
            // the machine is little-endian: a small value is the slot's first bytes
            slots.setAtIndex(JAVA_LONG, i, values[i]);
            MemorySegment struct = structs[i];
            pointers.setAtIndex(
                    ADDRESS,
                    i,
                    struct == null ? slots.asSlice((long) i * Long.BYTES) : requireAlive(struct));
        }
        return pointers;
    }

    private static MemorySegment requireAlive(MemorySegment struct) {
        if (!struct.scope().isAlive()) {
            throw new IllegalStateException("launch refused: the memory of a struct is closed");
        }
        return struct;
    }

    private KernelArguments add(long value, int size) {
        if (count == MAX_ARGUMENTS) {
            throw new IllegalStateException("a launch takes at most " + MAX_ARGUMENTS);
        }
        values[count] = value;
        sizes[count++] = size;
        return this;
    }

    @Override
    public String toString() {
        return "arguments" + Arrays.toString(Arrays.copyOf(values, count));
    }
}
