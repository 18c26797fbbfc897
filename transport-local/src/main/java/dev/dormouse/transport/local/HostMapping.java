package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.TransportException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Pages of a peer's host memory, from files in memory. */
final class HostMapping extends PeerMapping {
    private static final long POPULATE_BYTES = 16L << 20;

    /** Not mapped any more: those that are gone. Changed while nobody uses the mapping. */
    private final List<MemorySegment> mapped;

    /** How far the page table was filled: one thread's. */
    private int populatedFiles;

    private long populatedBytes;
    private boolean populated;

    private HostMapping(List<Place> places, List<MemorySegment> mapped, boolean writable) {
        super(places, writable);
        this.mapped = mapped;
        populated = mapped.isEmpty();
    }

    /**
     * Maps what a peer gave. Each file once; the descriptors stay the caller's.
     *
     * @throws TransportException if a file could lose its pages, or does not have what it is said
     *     to have; nothing is mapped then
     */
    static HostMapping map(int[] descriptors, List<SharedSegment> segments) {
        List<MemorySegment> mapped = new ArrayList<>();
        List<Place> places = new ArrayList<>();
        boolean writable = true;
        try {
            for (int file = 0; file < descriptors.length; file++) {
                int index = file;
                List<SharedSegment> within =
                        segments.stream().filter(segment -> segment.file() == index).toList();
                boolean fileWritable = MemoryFile.isWritable(descriptors[file]);
                writable &= fileWritable;
                mapFile(descriptors[file], fileWritable, within, mapped, places);
            }
            return new HostMapping(places, mapped, writable);
        } catch (LibcException | TransportException e) {
            TransportException failure =
                    new TransportException("map a peer's memory failed: " + e.getMessage(), e);
            mapped.forEach(segment -> unmapAfter(segment, failure));
            throw failure;
        }
    }

    private static void mapFile(
            int descriptor,
            boolean writable,
            List<SharedSegment> within,
            List<MemorySegment> mapped,
            List<Place> places) {
        if (within.isEmpty()) {
            throw new TransportException("a file came along that holds nothing");
        }
        SharedFiles.requireFixedLength(descriptor);
        long pageBytes = Libc.pageSizeBytes();
        long start =
                within.stream().mapToLong(SharedSegment::offsetBytes).min().orElseThrow()
                        / pageBytes
                        * pageBytes;
        long end = within.stream().mapToLong(SharedSegment::endBytes).max().orElseThrow();
        MemoryFile.Status status = MemoryFile.status(descriptor);
        if (end > Math.min(status.sizeBytes(), status.allocatedBytes())) {
            throw new TransportException( // in a hole, each page that is read is taken
                    "a file has %d bytes and pages for %d, and is said to have %d"
                            .formatted(status.sizeBytes(), status.allocatedBytes(), end));
        }
        int protection = writable ? Libc.PROT_READ | Libc.PROT_WRITE : Libc.PROT_READ;
        MemorySegment map = Libc.map(end - start, protection, Libc.MAP_SHARED, descriptor, start);
        mapped.add(map);
        for (SharedSegment segment : within) {
            places.add(
                    new Place(
                            segment.address(),
                            segment.lengthBytes(),
                            map.address() + segment.offsetBytes() - start));
        }
    }

    @Override
    MemoryKind kind() {
        return MemoryKind.DRAM;
    }

    /** Enters pages into the page table, so that the first copy need not. */
    @Override
    boolean populateMore() {
        return use(this::populateNext) && !populated;
    }

    private void populateNext() {
        if (populated) {
            return;
        }
        MemorySegment file = mapped.get(populatedFiles);
        long bytes = Math.min(POPULATE_BYTES, file.byteSize() - populatedBytes);
        try {
            Libc.advise(file.asSlice(populatedBytes, bytes), Libc.MADV_POPULATE_READ);
        } catch (LibcException e) { // Linux before 5.14: then the copies pay
            populated = true;
            return;
        }
        populatedBytes += bytes;
        if (populatedBytes == file.byteSize()) {
            populatedBytes = 0;
            populatedFiles++;
            populated = populatedFiles == mapped.size();
        }
    }

    @Override
    void release() {
        while (!mapped.isEmpty()) {
            Libc.unmap(mapped.getLast());
            mapped.removeLast();
        }
    }

    private static void unmapAfter(MemorySegment segment, TransportException failure) {
        try {
            Libc.unmap(segment);
        } catch (LibcException e) {
            failure.addSuppressed(e);
        }
    }
}
