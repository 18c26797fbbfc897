package dev.dormouse.engine.core;

import dev.dormouse.memory.MemoryException;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The files in memory that hold an engine's memory, for a transport whose peers map it. Empty until
 * the engine has taken its memory. Thread-safe.
 */
public final class MemoryFiles {
    private record Source(SleepableMemory memory, Set<MemoryTag> tags) {}

    private final List<Source> sources = new CopyOnWriteArrayList<>();

    /** No memory yet. */
    public MemoryFiles() {}

    /**
     * A range's file.
     *
     * @param descriptor open for reading and writing; the caller closes it
     * @param offsetBytes where the range starts in the file
     * @param lengthBytes from there to the file's end
     */
    public record Part(int descriptor, long offsetBytes, long lengthBytes) {}

    void add(SleepableMemory memory, Set<MemoryTag> tags) {
        sources.add(new Source(memory, Set.copyOf(tags)));
    }

    void remove(SleepableMemory memory) {
        sources.removeIf(source -> source.memory() == memory);
    }

    /**
     * The file behind a range as it is mapped now. The next wake makes another one.
     *
     * @throws MemoryException if the range is not in one tag of this engine's memory, or asleep
     */
    public Part export(long address, long lengthBytes) {
        for (Source source : sources) {
            for (MemoryTag tag : source.tags()) {
                long offset = address - source.memory().address(tag);
                long length = source.memory().lengthBytes(tag);
                if (offset >= 0 && offset <= length && lengthBytes <= length - offset) {
                    return new Part(source.memory().export(tag), offset, length - offset);
                }
            }
        }
        throw new MemoryException(
                "export 0x%x, %d bytes, failed: no tag of this engine's memory holds it"
                        .formatted(address, lengthBytes));
    }
}
