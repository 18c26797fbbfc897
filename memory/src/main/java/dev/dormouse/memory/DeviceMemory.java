package dev.dormouse.memory;

import dev.dormouse.cuda.Cleanup;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaException;
import dev.dormouse.cuda.DeviceSpan;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;

/**
 * A GPU's memory whose physical pages can be given back and fetched again, by tag, under addresses
 * that never change: what {@link SleepableMemory} is for host memory.
 *
 * <p>Every tag starts {@link Residency#ASLEEP}: reserving costs address space only. What a tag
 * holds after a wake is undefined, unless its content was kept ({@link Retention#KEEP_ON_HOST}).
 * The first sleep that keeps content pins host memory that the copies go through, of at most a few
 * hundred MiB for all tags, and starts threads that serve them; both stay until {@link #close}.
 *
 * <p>One thread owns the memory and makes all calls, except {@link #residency}, which any thread
 * may ask. An address that is used asleep ends the process's use of the GPU, so whoever queues
 * copies or kernels must end that before a sleep; what is queued in the context when the sleep
 * begins is waited for. A device gets its memory back only when no process maps it any more and
 * every {@link DeviceExport} is closed: peers must be revoked before, and {@link SleepReport} tells
 * what was unmapped here, not what came back.
 */
public final class DeviceMemory implements AutoCloseable {
    private final Map<MemoryTag, DeviceTagMemory> memories = new EnumMap<>(MemoryTag.class);
    private final PageMaker pages;
    private final LongSupplier nanoClock;

    private DeviceMemory(PageMaker pages, LongSupplier nanoClock) {
        this.pages = pages;
        this.nanoClock = nanoClock;
    }

    /**
     * Reserves the addresses, one range per tag.
     *
     * @param context stays the caller's; to be closed after this memory
     * @param capacityBytes per tag, rounded up to whole granules (2 MiB on an H200)
     * @param pieceBytes the largest piece of physical memory, rounded up likewise; each piece is
     *     one file descriptor when it is exported. See {@link #advisedPieceBytes}
     * @param nanoClock as {@link System#nanoTime}, for the durations in reports
     * @throws MemoryException if the driver refuses; nothing is reserved then
     */
    public static DeviceMemory reserve(
            CudaContext context,
            Map<MemoryTag, Long> capacityBytes,
            long pieceBytes,
            LongSupplier nanoClock) {
        if (pieceBytes < 1) {
            throw new IllegalArgumentException(
                    "device memory: pieceBytes is %d, must be positive".formatted(pieceBytes));
        }
        return reserve(
                MemoryOptions.of(capacityBytes),
                new CudaPageMaker(
                        context,
                        pieceBytes,
                        StagingRing.Shape.advised(),
                        () -> SystemMemory.read().allocatableBytes()),
                nanoClock);
    }

    /**
     * The pieces that suit a capacity: a half, of 1 GiB at least and 32 GiB at most. Measured on
     * H200s: of 64 GiB in 2 pieces an owner maps in 9 ms and a peer imports and maps in 3.5 ms, in
     * 8 pieces 14 and 5.5 ms; a single piece of 64 GiB takes 0.3 s to make.
     */
    public static long advisedPieceBytes(long capacityBytes) {
        return Math.clamp(Math.ceilDiv(capacityBytes, 2), 1L << 30, 32L << 30);
    }

    /** How many threads move content between pinned and ordinary host memory on this machine. */
    public static int contentThreads() {
        return StagingRing.Shape.advised().threads();
    }

    /** As the public one, with pages of any origin. */
    static DeviceMemory reserve(MemoryOptions options, PageMaker pages, LongSupplier nanoClock) {
        DeviceMemory memory = new DeviceMemory(pages, nanoClock);
        options.capacityBytes()
                .forEach(
                        (tag, bytes) -> {
                            try {
                                memory.memories.put(
                                        tag, new DeviceTagMemory(tag, pages.reserve(bytes)));
                            } catch (CudaException e) {
                                MemoryException failure =
                                        new MemoryException(
                                                "reserve %s on the device failed: %s"
                                                        .formatted(tag.label(), e.getMessage()),
                                                e);
                                memory.closeAfter(failure);
                                throw failure;
                            }
                        });
        return memory;
    }

    /** Reserves the tags' addresses, and owns what they share. Throws {@link CudaException}. */
    @FunctionalInterface
    interface PageMaker extends AutoCloseable {
        /** Reserves one tag's addresses. */
        DevicePages reserve(long lengthBytes);

        /** Pinned host memory that the tags share. */
        default long stagingBytes() {
            return 0;
        }

        /** Gives back what the tags share, after all of them. Idempotent. */
        @Override
        default void close() {}
    }

    /** Where a tag's range starts, the same for the life of the memory. */
    public long address(MemoryTag tag) {
        return memory(tag).address();
    }

    /**
     * The tag's capacity in whole granules: what there is to register, to give back and to fetch.
     */
    public long lengthBytes(MemoryTag tag) {
        return memory(tag).lengthBytes();
    }

    /** Whether the tag's memory is there. Safe for any thread. */
    public Residency residency(MemoryTag tag) {
        return memory(tag).residency();
    }

    /** Host memory that keeps the content of sleeping tags. */
    public long backupBytes() {
        return sum(DeviceTagMemory::backupBytes);
    }

    /**
     * Pinned host memory that copies go through: none before the first sleep that keeps content.
     */
    public long stagingBytes() {
        return pages.stagingBytes();
    }

    /**
     * All of an awake tag, for copies and kernels, until the next sleep.
     *
     * @throws MemoryException if the tag is asleep or lost
     */
    public DeviceSpan span(MemoryTag tag) {
        return memory(tag).span();
    }

    /**
     * Descriptors of an awake tag's physical memory.
     *
     * @return the caller's to close, before the next sleep
     * @throws MemoryException if the tag is asleep or lost, or the device cannot export
     */
    public DeviceExport export(MemoryTag tag) {
        return memory(tag).export();
    }

    /**
     * Takes the memory of the tags away from under their addresses. Tags that sleep already are
     * left alone, with what was kept of their content.
     *
     * @throws MemoryException if the host has no room for what is to be kept, or the driver
     *     refuses. {@link #residency} tells which tags sleep; those that are still awake have their
     *     content, and the call may be repeated.
     */
    public SleepReport sleep(Set<MemoryTag> tags, Retention retention) {
        long startNanos = nanoClock.getAsLong();
        Map<MemoryTag, Long> releasedBytes = new EnumMap<>(MemoryTag.class);
        for (DeviceTagMemory memory : select("sleep", tags, Residency.AWAKE)) {
            memory.sleep(retention);
            releasedBytes.put(memory.tag(), memory.lengthBytes());
        }
        return new SleepReport(releasedBytes, nanoClock.getAsLong() - startNanos);
    }

    /**
     * Puts memory under the tags' addresses, and back into it what was kept; no copy of that stays.
     * Tags that are awake already are left alone.
     *
     * @throws NotEnoughMemoryException if the device has no room
     * @throws MemoryException if the driver refuses otherwise. After either, {@link #residency}
     *     tells which tags are awake, and the call may be repeated.
     */
    public WakeReport wake(Set<MemoryTag> tags) {
        long startNanos = nanoClock.getAsLong();
        Map<MemoryTag, Long> mappedBytes = new EnumMap<>(MemoryTag.class);
        for (DeviceTagMemory memory : select("wake", tags, Residency.ASLEEP)) {
            memory.wake();
            mappedBytes.put(memory.tag(), memory.lengthBytes());
        }
        return new WakeReport(mappedBytes, nanoClock.getAsLong() - startNanos);
    }

    /**
     * Gives memory, addresses and kept content back. Idempotent.
     *
     * @throws MemoryException if the driver refuses; all of it was tried, and is not tried again
     */
    @Override
    public void close() {
        Cleanup cleanup = new Cleanup();
        for (DeviceTagMemory memory : memories.values()) {
            if (memory.residency() != Residency.CLOSED) {
                cleanup.run(memory::close);
            }
        }
        cleanup.run(this::closeStaging);
        cleanup.rethrow();
    }

    private void closeStaging() {
        try {
            pages.close();
        } catch (CudaException e) {
            throw new MemoryException(
                    "close of the device's staging memory failed: " + e.getMessage(), e);
        }
    }

    /** Those of the tags' memories that are in one state; refuses lost and closed ones. */
    private List<DeviceTagMemory> select(String operation, Set<MemoryTag> tags, Residency wanted) {
        List<DeviceTagMemory> selected = tags.stream().sorted().map(this::memory).toList();
        for (DeviceTagMemory memory : selected) {
            switch (memory.residency()) {
                case ASLEEP, AWAKE -> {}
                case LOST -> throw memory.lost(operation);
                case CLOSED ->
                        throw new IllegalStateException(
                                "%s %s refused: the device's memory is closed"
                                        .formatted(operation, memory.tag().label()));
            }
        }
        return selected.stream().filter(memory -> memory.residency() == wanted).toList();
    }

    private long sum(ToLongFunction<DeviceTagMemory> figure) {
        return memories.values().stream().mapToLong(figure).sum();
    }

    private DeviceTagMemory memory(MemoryTag tag) {
        DeviceTagMemory memory = memories.get(tag);
        if (memory == null) {
            throw new IllegalArgumentException(
                    "device memory %s was not reserved; reserved are %s"
                            .formatted(tag.label(), memories.keySet()));
        }
        return memory;
    }

    private void closeAfter(MemoryException failure) {
        try {
            close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }
}
