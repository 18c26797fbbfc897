package dev.dormouse.transport.local;

import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** Host memory. */
final class HostNodeMemory implements NodeMemory {
    private static final String PEER_PAGES = "r--s";

    private final SleepableMemory memory =
            SleepableMemory.reserve(
                    MemoryOptions.of(Map.of(MemoryTag.KV_CACHE, BYTES)), System::nanoTime);
    private final SleepableRegion region = memory.allocate("kv", MemoryTag.KV_CACHE, BYTES);

    @Override
    public MemoryKind kind() {
        return MemoryKind.DRAM;
    }

    @Override
    public long address() {
        return region.address();
    }

    @Override
    public LocalTransportOptions options() {
        return LocalTransportOptions.of(this::export);
    }

    private Backing export(MemoryRange range) {
        return new BackingFile(
                memory.export(MemoryTag.KV_CACHE),
                range.address() - memory.address(MemoryTag.KV_CACHE),
                range.lengthBytes());
    }

    @Override
    public void write(Consumer<MemorySegment> content) {
        use(content);
    }

    @Override
    public void read(Consumer<MemorySegment> content) {
        use(content);
    }

    private void use(Consumer<MemorySegment> content) {
        try (MemoryLease lease = region.lease("test")) {
            content.accept(lease.segment());
        }
    }

    @Override
    public void sleep() {
        memory.sleep(Set.of(MemoryTag.KV_CACHE));
    }

    @Override
    public void wake() {
        memory.wake(Set.of(MemoryTag.KV_CACHE));
    }

    @Override
    public long freeBytes() {
        throw new UnsupportedOperationException("other processes take and give host memory, too");
    }

    @Override
    public long peerMappings() {
        try (var lines = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            return lines.filter(line -> line.contains("memfd:dormouse-"))
                    .filter(line -> line.contains(" " + PEER_PAGES + " "))
                    .count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        memory.close();
    }
}
