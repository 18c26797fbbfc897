package dev.dormouse.cli.serve;

import dev.dormouse.engine.core.RankMemory;
import dev.dormouse.memory.MemoryException;
import dev.dormouse.memory.MemoryTag;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

/** A rank's real memory, of which single tags fail to go or to come. */
final class FaultyMemory implements RankMemory {
    private final RankMemory memory;
    private final Faults faults;
    private final int rank;
    private final Map<MemoryTag, Long> addresses = new EnumMap<>(MemoryTag.class);

    FaultyMemory(RankMemory memory, Faults faults, int rank) {
        this.memory = memory;
        this.faults = faults;
        this.rank = rank;
        for (MemoryTag tag : MemoryTag.values()) {
            addresses.put(tag, memory.address(tag));
        }
    }

    /** Whether the tag has pages, by the kernel's own list; also once the memory is closed. */
    boolean isMapped(MemoryTag tag) {
        String start = Long.toHexString(addresses.getOrDefault(tag, 0L)) + "-";
        try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
            return mappings.anyMatch(
                    line -> line.startsWith(start) && line.contains("/memfd:dormouse-"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void enter(String step, MemoryTag tag) {
        faults.enter(step + " " + tag.label() + " " + rank, MemoryException::new);
    }

    @Override
    public long address(MemoryTag tag) {
        return memory.address(tag);
    }

    @Override
    public long lengthBytes(MemoryTag tag) {
        return memory.lengthBytes(tag);
    }

    @Override
    public boolean isAwake(MemoryTag tag) {
        return memory.isAwake(tag);
    }

    @Override
    public Use use(MemoryTag tag, String holder) {
        return memory.use(tag, holder);
    }

    @Override
    public long sleep(Set<MemoryTag> tags) {
        long bytes = 0;
        for (MemoryTag tag : new TreeSet<>(tags)) {
            enter("unmap", tag);
            bytes += memory.sleep(Set.of(tag));
        }
        return bytes;
    }

    @Override
    public long wake(Set<MemoryTag> tags) {
        long bytes = 0;
        for (MemoryTag tag : new TreeSet<>(tags)) {
            enter("map", tag);
            bytes += memory.wake(Set.of(tag));
        }
        return bytes;
    }

    @Override
    public void close() {
        memory.close();
    }
}
