package dev.dormouse.cli.bench;

import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.local.BackingFile;
import dev.dormouse.transport.local.LocalTransport;
import dev.dormouse.transport.local.LocalTransportOptions;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Memory that can sleep and the transports over it, on either side of a measurement. */
final class TransferSide implements AutoCloseable {
    /** Mapped memory. */
    static final String LOCAL = "local";

    /** The transports that can be measured. */
    static final List<String> NAMES = List.of(LOCAL, "nixl");

    private static final MemoryTag TAG = MemoryTag.KV_CACHE;
    private static final long MIX = 0x9e37_79b9_7f4a_7c15L;

    private final SleepableMemory memory;
    private final MemoryLease lease;
    private final List<KvTransport> transports = new ArrayList<>();

    TransferSide(long lengthBytes) {
        memory =
                SleepableMemory.reserve(
                        MemoryOptions.of(Map.of(TAG, lengthBytes)), System::nanoTime);
        SleepableRegion region = memory.allocate("bench", TAG, lengthBytes);
        var _ = memory.wake(Set.of(TAG));
        lease = region.lease("bench");
    }

    MemorySegment segment() {
        return lease.segment();
    }

    MemoryRange range() {
        return new MemoryRange(memory.address(TAG), lease.segment().byteSize(), MemoryKind.DRAM, 0);
    }

    /** A descriptor of the memory's file, open until this process ends. */
    int export() {
        return memory.export(TAG);
    }

    /** No two words are equal. */
    void fill() {
        MemorySegment segment = segment();
        for (long offset = 0; offset < segment.byteSize(); offset += Long.BYTES) {
            segment.set(ValueLayout.JAVA_LONG, offset, (offset + Long.BYTES) * MIX);
        }
    }

    KvTransport open(String name) {
        KvTransport transport =
                name.equals(LOCAL)
                        ? LocalTransport.open(LocalTransportOptions.of(this::backing))
                        : NixlTransport.open(
                                "UCX", UcxSleepDefaults.applied(Map.of(), System.getenv()));
        transports.add(transport);
        return transport;
    }

    private BackingFile backing(MemoryRange range) {
        long offset = range.address() - memory.address(TAG);
        return new BackingFile(export(), offset, memory.lengthBytes(TAG) - offset);
    }

    @Override
    public void close() {
        transports.forEach(KvTransport::close);
        lease.close();
        memory.close();
    }
}
