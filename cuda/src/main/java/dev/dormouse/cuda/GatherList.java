package dev.dormouse.cuda;

/**
 * Which blocks a {@link GatherKernel} copies. Made once for the longest list and filled again and
 * again; it has its own host and device memory. Used by one thread at a time.
 */
public final class GatherList implements AutoCloseable {
    private enum State {
        /** Blocks are added. */
        FILLING,
        /** A launch may be reading it; after its event it can be filled again. */
        LAUNCHED,
        CLOSED
    }

    private final PinnedMemory host;
    private final DeviceBuffer device;
    private final CudaEvent read;
    private final GatherTable table;
    private State state = State.FILLING;

    private GatherList(PinnedMemory host, DeviceBuffer device, CudaEvent read) {
        this.host = host;
        this.device = device;
        this.read = read;
        this.table = new GatherTable(host.segment());
    }

    /**
     * An empty list; {@link #clear} comes first.
     *
     * @param capacity the most blocks it can hold, at 16 bytes each
     * @throws CudaException when there is too little memory
     */
    public static GatherList allocate(CudaContext context, int capacity) {
        if (capacity <= 0) {
            throw new IllegalArgumentException("gather list refused: capacity=" + capacity);
        }
        long bytes = capacity * GatherTable.ENTRY_BYTES;
        PinnedMemory host = PinnedMemory.allocate(context, bytes);
        DeviceBuffer device = null;
        try {
            device = DeviceBuffer.allocate(context, bytes);
            return new GatherList(host, device, CudaEvent.create(context));
        } catch (RuntimeException e) {
            Cleanup cleanup = new Cleanup();
            if (device != null) {
                cleanup.run(device::close);
            }
            cleanup.run(host::close);
            try {
                cleanup.rethrow();
            } catch (RuntimeException cleanupFailure) {
                e.addSuppressed(cleanupFailure);
            }
            throw e;
        }
    }

    /**
     * Empties it.
     *
     * @param blockBytes the length of each block that comes now
     * @throws IllegalStateException when a launch has not read it yet, see {@link #isReusable}
     */
    public void clear(long blockBytes) {
        if (!isReusable()) {
            throw new IllegalStateException(
                    "clear gather list refused: a launch reads it; await its stream first");
        }
        table.clear(blockBytes);
        state = State.FILLING;
    }

    /**
     * Adds a block. Sources and targets may lie in any number of spans; no target may overlap a
     * source or another target.
     *
     * @throws IndexOutOfBoundsException when the block leaves its span; nothing is added
     * @throws IllegalStateException when it is full, or launched and not cleared
     */
    public void add(DeviceSpan source, long sourceOffset, DeviceSpan target, long targetOffset) {
        if (state != State.FILLING) {
            throw new IllegalStateException("add block refused: gather list is " + state);
        }
        table.add(source, sourceOffset, target, targetOffset);
    }

    /**
     * Adds blocks of which the caller knows that source and target are mapped from end to end, and
     * that no target overlaps a source or another target.
     *
     * @param addresses of source and target in turn; may hold more
     * @throws IllegalStateException when they do not fit, or it is launched and not cleared;
     *     nothing is added
     */
    public void addChecked(long[] addresses, int blocks) {
        if (state != State.FILLING) {
            throw new IllegalStateException("add blocks refused: gather list is " + state);
        }
        table.addAll(addresses, blocks);
    }

    /** How many blocks. */
    public int size() {
        return table.size();
    }

    /** Bytes of all blocks. */
    public long totalBytes() {
        return table.size() * table.blockBytes();
    }

    /** Whether no launch reads it. Never waits. */
    public boolean isReusable() {
        requireOpen();
        return state == State.FILLING || read.hasPassed();
    }

    /** Waits until no launch reads it. */
    public void awaitReusable() {
        requireOpen();
        if (state == State.LAUNCHED) {
            read.await();
            state = State.FILLING;
        }
    }

    /** Frees its memory, after the device has done its work. Closing twice is fine. */
    @Override
    public void close() {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        Cleanup cleanup = new Cleanup();
        cleanup.run(read::close);
        cleanup.run(device::close);
        cleanup.run(host::close);
        cleanup.rethrow();
    }

    GatherTable table() {
        requireOpen();
        return table;
    }

    /**
     * Where the kernel finds the table, which is sent to the device once per filling. Read in place
     * by all its warps, from the host, even a short one costs large blocks half of their rate (512
     * warps ask for each entry of a block of 1 MiB; measured on an H200).
     */
    DeviceSpan table(CudaStream stream) {
        requireOpen();
        stream.requireSameContext(device, "gather");
        DeviceSpan span = device.span().slice(0, table.size() * GatherTable.ENTRY_BYTES);
        if (state == State.LAUNCHED) {
            stream.waitFor(read); // it may have been launched on another stream
        } else {
            // from here on the device may read it, also if the launch itself fails
            state = State.LAUNCHED;
            stream.copyToDevice(host, 0, span);
        }
        return span;
    }

    /** What is queued so far is the last use. */
    void markLaunched(CudaStream stream) {
        state = State.LAUNCHED;
        stream.record(read);
    }

    private void requireOpen() {
        if (state == State.CLOSED) {
            throw new IllegalStateException("gather list is closed");
        }
    }
}
