package dev.dormouse.memory;

import dev.dormouse.foreign.LibcException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The memory of one tag: its addresses, its file while awake, its leases. */
final class TagMemory {
    private static final System.Logger LOG = System.getLogger("dormouse.memory");

    private static final int NO_FILE = -1;

    /** A cache line, and the widest vector register of x86. */
    private static final long ALIGNMENT_BYTES = 64;

    /**
     * The kernel undoes a whole {@code fallocate} when a signal arrives, and starts anew. Pieces
     * that take a few milliseconds let a wake end under a profiler that sends signals all the time.
     */
    private static final long PIECE_BYTES = 16L << 20;

    private final MemoryTag tag;
    private final PageCalls calls;
    private final Optional<Byte> poison;
    private final MemorySegment range;
    private final Set<MemoryLease> leases = new LinkedHashSet<>();

    private volatile Residency residency = Residency.ASLEEP;
    private int file = NO_FILE;
    private long allocatedBytes;

    /** Owns what leases hand out since the last wake; opened by the first lease. */
    private @Nullable Arena wakePeriod;

    TagMemory(MemoryTag tag, long capacityBytes, Optional<Byte> poison, PageCalls calls) {
        this.tag = tag;
        this.calls = calls;
        this.poison = poison;
        this.range = calls.reserve(roundUp(capacityBytes, calls.pageSizeBytes()));
    }

    MemoryTag tag() {
        return tag;
    }

    Residency residency() {
        return residency;
    }

    long address() {
        return range.address();
    }

    long lengthBytes() {
        return range.byteSize();
    }

    SleepableRegion allocate(String name, long lengthBytes) {
        long offsetBytes = roundUp(allocatedBytes, ALIGNMENT_BYTES);
        if (lengthBytes < 1 || lengthBytes > lengthBytes() - offsetBytes) {
            throw new IllegalArgumentException(
                    "allocate %s (%s) of %d bytes: must be 1 to %d, what is left of %d reserved bytes"
                            .formatted(
                                    name,
                                    tag.label(),
                                    lengthBytes,
                                    lengthBytes() - offsetBytes,
                                    lengthBytes()));
        }
        allocatedBytes = offsetBytes + lengthBytes;
        return new SleepableRegion(this, name, offsetBytes, lengthBytes);
    }

    @SuppressWarnings("MustBeClosedChecker") // endUse closes it
    MemoryLease lease(SleepableRegion region, String holder) {
        requireAwake("lease", region.name());
        if (wakePeriod == null) {
            wakePeriod = Arena.ofShared();
        }
        MemorySegment segment =
                MemorySegment.ofAddress(region.address())
                        .reinterpret(region.lengthBytes(), wakePeriod, null);
        MemoryLease lease = new MemoryLease(this, region, holder, segment);
        leases.add(lease);
        return lease;
    }

    int export() {
        requireAwake("export", tag.label());
        try {
            return calls.duplicate(file);
        } catch (LibcException e) {
            throw failed("export", e);
        }
    }

    private void requireAwake(String operation, String what) {
        switch (residency) {
            case AWAKE -> {}
            case ASLEEP -> throw new RegionAsleepException(operation, what, tag);
            case LOST -> throw lost(operation + " " + what);
            case CLOSED ->
                    throw new IllegalStateException(
                            "%s %s refused: %s is closed".formatted(operation, what, tag.label()));
        }
    }

    void end(MemoryLease lease) {
        leases.remove(lease);
    }

    /**
     * Refuses while there is any use, then makes every segment that was handed out refuse access.
     * Harmless when the sleep does not follow: the next lease opens a new period.
     */
    void endUse(String operation) {
        if (!leases.isEmpty()) {
            List<String> holders = leases.stream().map(MemoryLease::toString).toList();
            throw new MemoryInUseException(operation, tag, holders);
        }
        if (wakePeriod == null) {
            return;
        }
        try {
            wakePeriod.close();
        } catch (IllegalStateException e) {
            MemoryInUseException refusal =
                    new MemoryInUseException(
                            operation, tag, List.of("a native call that was given its segment"));
            refusal.initCause(e);
            throw refusal;
        }
        wakePeriod = null;
    }

    /** From AWAKE to ASLEEP. A failure leaves it AWAKE with its content, or LOST. */
    void sleep() {
        try {
            calls.mapSleeping(range);
        } catch (LibcException e) {
            // the failed call may have removed the old mapping; the file still has the content
            mapAgain(() -> calls.mapFile(range, file), e);
            throw failed("sleep", e);
        }
        become(Residency.ASLEEP);
        try {
            closeFile();
        } catch (LibcException e) {
            throw failed("sleep", e);
        }
    }

    /** From ASLEEP to AWAKE. A failure leaves it ASLEEP, or LOST. */
    void wake() {
        try {
            file = calls.createFile("dormouse-" + tag.label());
            for (long offset = 0; offset < lengthBytes(); offset += PIECE_BYTES) {
                calls.allocate(file, offset, Math.min(PIECE_BYTES, lengthBytes() - offset));
            }
            calls.seal(file);
        } catch (LibcException e) {
            closeFileAfter(e);
            throw wakeFailed(e);
        }
        try {
            calls.mapFile(range, file);
            calls.populate(range);
        } catch (LibcException e) {
            mapAgain(() -> calls.mapSleeping(range), e);
            closeFileAfter(e);
            throw wakeFailed(e);
        }
        poison.ifPresent(range::fill);
        become(Residency.AWAKE);
    }

    /** Gives everything back. A failure to unmap leaves it as it was. */
    void close() {
        if (residency == Residency.LOST) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "addresses of lost memory are left alone: tag={0} address=0x{1} bytes={2}",
                    tag.label(),
                    Long.toHexString(address()),
                    Long.toString(lengthBytes()));
        } else {
            try {
                calls.unmap(range);
            } catch (LibcException e) {
                throw failed("close", e);
            }
        }
        become(Residency.CLOSED);
        try {
            closeFile();
        } catch (LibcException e) {
            throw failed("close", e);
        }
    }

    /** How a refusal of an operation on lost memory reads. */
    MemoryException lost(String operation) {
        return new MemoryException(
                "%s refused: %s is lost, its mapping failed and could not be restored; restart the process"
                        .formatted(operation, tag.label()));
    }

    private void mapAgain(Runnable mapping, LibcException failure) {
        try {
            mapping.run();
        } catch (LibcException e) {
            failure.addSuppressed(e);
            become(Residency.LOST);
        }
    }

    private void closeFileAfter(LibcException failure) {
        try {
            closeFile();
        } catch (LibcException e) {
            failure.addSuppressed(e);
        }
    }

    private void closeFile() {
        if (file != NO_FILE) {
            int closing = file;
            file = NO_FILE;
            calls.closeFile(closing);
        }
    }

    private MemoryException wakeFailed(LibcException e) {
        boolean noMemory = e.errnoName().equals("ENOMEM") || e.errnoName().equals("ENOSPC");
        if (noMemory && residency == Residency.ASLEEP) {
            return new NotEnoughMemoryException(
                    Set.of(tag), lengthBytes(), calls.allocatableBytes(), e);
        }
        return failed("wake", e);
    }

    private MemoryException failed(String operation, LibcException e) {
        return new MemoryException(
                "%s %s failed, it is now %s: %s"
                        .formatted(operation, tag.label(), residency, e.getMessage()),
                e);
    }

    private void become(Residency next) {
        if (!residency.canBecome(next)) {
            throw new AssertionError(tag.label() + " cannot go from " + residency + " to " + next);
        }
        residency = next;
    }

    private static long roundUp(long bytes, long unitBytes) {
        return Math.ceilDiv(bytes, unitBytes) * unitBytes;
    }
}
