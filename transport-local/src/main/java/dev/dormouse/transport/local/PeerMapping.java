package dev.dormouse.transport.local;

import dev.dormouse.transport.MemoryKind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * A peer's memory, mapped here. Whoever touches it does so in {@link #use}, so that nobody can once
 * {@link #unmap} has returned. Safe for all threads.
 */
abstract sealed class PeerMapping permits HostMapping, DeviceMapping {
    private final List<Place> places;
    private final boolean writable;
    private final ReadWriteLock lock = new ReentrantReadWriteLock();
    private volatile boolean ending;

    PeerMapping(List<Place> places, boolean writable) {
        this.places = joined(places);
        this.writable = writable;
    }

    /** A range of the owner's memory, and where it is mapped here. */
    record Place(long address, long lengthBytes, long here) {
        private boolean covers(long at, long bytes) {
            return at >= address && bytes <= lengthBytes && at - address <= lengthBytes - bytes;
        }

        private boolean isFollowedBy(Place next) {
            return address + lengthBytes == next.address && here + lengthBytes == next.here;
        }
    }

    /** Ranges that follow each other, there and here, are one: a block may lie across. */
    private static List<Place> joined(List<Place> places) {
        List<Place> sorted = new ArrayList<>(places);
        sorted.sort(Comparator.comparingLong(Place::address));
        List<Place> joined = new ArrayList<>();
        for (Place place : sorted) {
            if (!joined.isEmpty() && joined.getLast().isFollowedBy(place)) {
                Place last = joined.removeLast();
                joined.add(
                        new Place(
                                last.address(),
                                last.lengthBytes() + place.lengthBytes(),
                                last.here()));
            } else {
                joined.add(place);
            }
        }
        return List.copyOf(joined);
    }

    /** Where the memory lies. */
    abstract MemoryKind kind();

    /** Whether the owner grants writing to all of it. */
    final boolean isWritable() {
        return writable;
    }

    /**
     * Where a part of the owner's memory is mapped here; 0 if it was not given. Not to be touched
     * outside of {@link #use}.
     */
    final long locate(long address, long lengthBytes) {
        for (Place place : places) {
            if (place.covers(address, lengthBytes)) {
                return place.here() + (address - place.address());
            }
        }
        return 0;
    }

    /** True from the moment at which somebody wants to unmap. */
    final boolean isEnding() {
        return ending;
    }

    /**
     * Does something with the memory, beside others, which must be short: whoever wants to unmap
     * waits for it.
     *
     * @return false if it is not mapped any more; nothing was done
     */
    final boolean use(Runnable action) {
        if (ending) {
            return false; // without a wait for the one who unmaps
        }
        Lock shared = lock.readLock();
        shared.lock();
        try {
            if (ending) {
                return false;
            }
            action.run();
            return true;
        } finally {
            shared.unlock();
        }
    }

    /**
     * Makes the first touches of some more of it cheap, if they are not.
     *
     * @return whether there is more
     */
    boolean populateMore() {
        return false;
    }

    /**
     * Gives the memory up. Idempotent. Waits for each {@link #use} that is under way, and for what
     * they have started.
     *
     * @throws RuntimeException if the kernel or the driver refuses; it is of no use, but mapped
     */
    final void unmap() {
        ending = true;
        whileNobodyUsesIt(() -> {}); // what was under way has been started; nothing is any more
        awaitStarted();
        whileNobodyUsesIt(this::release);
    }

    private void whileNobodyUsesIt(Runnable action) {
        Lock alone = lock.writeLock();
        alone.lock();
        try {
            action.run();
        } finally {
            alone.unlock();
        }
    }

    /** Waits for what {@link #use} has started, when nothing more can be; without any lock. */
    void awaitStarted() {}

    /** Unmaps what is mapped still; one thread at a time, while nobody uses it. */
    abstract void release();

    /** Whether a mapping that failed could not undo what it did. */
    static boolean isLeftBehind(RuntimeException failure) {
        return failure.getSuppressed().length > 0;
    }
}
