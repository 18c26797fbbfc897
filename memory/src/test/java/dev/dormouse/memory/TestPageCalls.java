package dev.dormouse.memory;

import dev.dormouse.foreign.Libc;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * The real calls, any of which can be made to fail. A mapping call that fails has removed the old
 * mapping, as the kernel's may; the others have done nothing.
 */
final class TestPageCalls implements PageCalls {
    enum Call {
        RESERVE,
        MAP_SLEEPING,
        CREATE_FILE,
        ALLOCATE,
        SEAL,
        DUPLICATE,
        MAP_FILE,
        POPULATE,
        UNMAP,
        CLOSE_FILE
    }

    private final LibcPageCalls real = new LibcPageCalls();
    private final Map<Call, Runnable> failures = new EnumMap<>(Call.class);
    private int passing;

    /** What the process may still get, instead of the truth. */
    OptionalLong allocatableBytes = OptionalLong.empty();

    /** Gives files their length without pages. */
    boolean sparse;

    long allocatedUpToBytes;

    /** Addresses of the ranges that were given back. */
    final List<Long> unmapped = new ArrayList<>();

    /** Every later call of that kind fails, with a system error that has nothing to do with it. */
    void fail(Call call) {
        failures.put(call, () -> Libc.close(-1));
    }

    /** As {@link #fail}, after {@code passing} calls that work, for want of memory. */
    void runOutOfMemory(Call call, int passing) {
        this.passing = passing;
        failures.put(call, () -> Libc.reserve(1L << 60));
    }

    void heal() {
        failures.clear();
    }

    private void enter(Call call) {
        Runnable failure = failures.get(call);
        if (failure != null && passing-- <= 0) {
            failure.run();
            throw new AssertionError("the call that should fail did not");
        }
    }

    private void enterMapping(Call call, MemorySegment range) {
        if (failures.containsKey(call)) {
            // in place of a hole, which another thread of the JVM might fill
            int flags = Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS | Libc.MAP_NORESERVE;
            Libc.mapOver(range, Libc.PROT_NONE, flags, -1, 0);
        }
        enter(call);
    }

    @Override
    public long pageSizeBytes() {
        return real.pageSizeBytes();
    }

    @Override
    public long allocatableBytes() {
        return allocatableBytes.orElseGet(() -> sparse ? Long.MAX_VALUE : real.allocatableBytes());
    }

    @Override
    public MemorySegment reserve(long lengthBytes) {
        enter(Call.RESERVE);
        return real.reserve(lengthBytes);
    }

    @Override
    public void mapSleeping(MemorySegment range) {
        enterMapping(Call.MAP_SLEEPING, range);
        real.mapSleeping(range);
    }

    @Override
    public int createFile(String name) {
        enter(Call.CREATE_FILE);
        return real.createFile(name);
    }

    @Override
    public void allocate(int file, long offsetBytes, long lengthBytes) {
        enter(Call.ALLOCATE);
        allocatedUpToBytes = offsetBytes + lengthBytes;
        if (sparse) {
            Libc.truncate(file, allocatedUpToBytes);
        } else {
            real.allocate(file, offsetBytes, lengthBytes);
        }
    }

    @Override
    public void seal(int file) {
        enter(Call.SEAL);
        real.seal(file);
    }

    @Override
    public int duplicate(int file) {
        enter(Call.DUPLICATE);
        return real.duplicate(file);
    }

    @Override
    public void mapFile(MemorySegment range, int file) {
        enterMapping(Call.MAP_FILE, range);
        real.mapFile(range, file);
    }

    @Override
    public void populate(MemorySegment range) {
        enter(Call.POPULATE);
        if (!sparse) {
            real.populate(range);
        }
    }

    @Override
    public void unmap(MemorySegment range) {
        enter(Call.UNMAP);
        real.unmap(range);
        unmapped.add(range.address());
    }

    @Override
    public void closeFile(int file) {
        real.closeFile(file);
        enter(Call.CLOSE_FILE);
    }
}
