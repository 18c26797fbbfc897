package dev.dormouse.transport.local;

import dev.dormouse.transport.MemoryKind;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/** The sleepable memory of a {@link LocalNode}: {@link #BYTES} bytes of one kind. */
interface NodeMemory extends AutoCloseable {
    long BYTES = 64L << 20;

    MemoryKind kind();

    long address();

    /** The transport's options for this memory. */
    LocalTransportOptions options();

    /** Writes all of it; the segment is as long as the memory. */
    void write(Consumer<MemorySegment> content);

    /** Shows all of it. */
    void read(Consumer<MemorySegment> content);

    void sleep();

    void wake();

    /** How much the host, or the device, could still give. */
    long freeBytes();

    /** How many peers' memories are mapped in this process. */
    long peerMappings();

    @Override
    void close();
}
