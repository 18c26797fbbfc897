package dev.dormouse.transport.local;

import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The files behind a registration's ranges, each once, open for what peers may do. */
final class SharedFiles implements SharedBacking {
    private static final int FIXED_LENGTH = MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW;

    private final SegmentAccess access;
    private final Map<FileIdentity, Integer> indices = new LinkedHashMap<>();
    private final List<Integer> descriptors = new ArrayList<>();
    private final List<SharedSegment> segments = new ArrayList<>();

    private record FileIdentity(long device, long inode) {}

    private SharedFiles(SegmentAccess access) {
        this.access = access;
    }

    /** As {@link SharedBacking#of}. */
    static SharedFiles of(List<MemoryRange> ranges, SegmentSource source, SegmentAccess access) {
        SharedFiles files = new SharedFiles(access);
        try {
            for (MemoryRange range : ranges) {
                files.add(range, source.export(range));
            }
            return files;
        } catch (RuntimeException e) {
            files.close();
            throw e;
        }
    }

    @Override
    public SharedMemory memory() {
        return new SharedMemory.HostFiles(descriptors.size());
    }

    @Override
    public List<SharedSegment> segments() {
        return segments;
    }

    @Override
    public List<Integer> descriptors() {
        return descriptors;
    }

    @Override
    public void close() {
        descriptors.forEach(SharedBacking::closeQuietly);
        descriptors.clear();
    }

    private void add(MemoryRange range, Backing backing) {
        try {
            if (!(backing instanceof BackingFile file)) {
                throw new TransportException(
                        "register %s failed: not backed by a file in memory".formatted(range));
            }
            MemoryFile.Status status = MemoryFile.status(file.descriptor());
            if (file.offsetBytes() < 0
                    || file.lengthBytes() < range.lengthBytes()
                    || file.offsetBytes() > status.sizeBytes() - range.lengthBytes()) {
                throw new TransportException(
                        "register %s failed: its file has %d bytes, of which %d from %d on are said to back it"
                                .formatted(
                                        range,
                                        status.sizeBytes(),
                                        file.lengthBytes(),
                                        file.offsetBytes()));
            }
            requireFixedLength(file.descriptor());
            FileIdentity identity = new FileIdentity(status.device(), status.inode());
            Integer index = indices.get(identity);
            if (index == null) {
                index = descriptors.size();
                descriptors.add(share(file.descriptor()));
                indices.put(identity, index);
            }
            segments.add(
                    new SharedSegment(
                            range.address(), range.lengthBytes(), index, file.offsetBytes()));
        } finally {
            SharedBacking.discard(backing);
        }
    }

    private int share(int descriptor) {
        return switch (access) {
            case READ -> MemoryFile.openReadOnly(descriptor);
            case READ_WRITE -> MemoryFile.duplicate(descriptor);
        };
    }

    /**
     * Whoever maps a file that becomes shorter, or whose pages come from a pool that is empty, dies
     * of SIGBUS.
     *
     * @throws TransportException if that is possible
     */
    static void requireFixedLength(int descriptor) {
        int seals = MemoryFile.seals(descriptor);
        if ((seals & FIXED_LENGTH) != FIXED_LENGTH) {
            throw new TransportException(
                    "share a file in memory failed: its length is not sealed, seals=0x%x are set and 0x%x needed"
                            .formatted(seals, FIXED_LENGTH));
        }
        if (!MemoryFile.hasOrdinaryPages(descriptor)) {
            throw new TransportException(
                    "share a file in memory failed: its pages are of a pool, such as huge pages");
        }
    }
}
