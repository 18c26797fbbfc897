package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.transport.TransportException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * A peer's pages, mapped here. Whoever touches them does so in {@link #use}, so that nobody can
 * once {@link #unmap} has returned. Safe for all threads.
 */
final class PeerMapping {
    private static final long POPULATE_BYTES = 16L << 20;

    /** A range of the owner's memory, and where it is mapped here. */
    private record Place(long address, long lengthBytes, long here) {
        boolean covers(long at, long bytes) {
            return at >= address && bytes <= lengthBytes && at - address <= lengthBytes - bytes;
        }
    }

    private final List<Place> places;
    private final boolean writable;

    /** Not mapped any more: those that are gone. Guarded by this. */
    private final List<MemorySegment> mapped;

    private int populatedFiles;
    private long populatedBytes;
    private volatile boolean ending;

    private PeerMapping(List<Place> places, List<MemorySegment> mapped, boolean writable) {
        this.places = List.copyOf(places);
        this.mapped = mapped;
        this.writable = writable;
    }

    /**
     * Maps what a peer gave. Each file once; the descriptors stay the caller's.
     *
     * @throws TransportException if a file could lose its pages, or does not have what it is said
     *     to have; nothing is mapped then
     */
    static PeerMapping map(int[] descriptors, List<SharedSegment> segments) {
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
            return new PeerMapping(joined(places), mapped, writable);
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

    /** Ranges that follow each other, there and here, are one: a block may lie across. */
    private static List<Place> joined(List<Place> places) {
        List<Place> joined = new ArrayList<>();
        places.sort(Comparator.comparingLong(Place::address));
        for (Place place : places) {
            Place last = joined.isEmpty() ? null : joined.getLast();
            if (last != null
                    && last.address() + last.lengthBytes() == place.address()
                    && last.here() + last.lengthBytes() == place.here()) {
                joined.removeLast();
                joined.add(
                        new Place(
                                last.address(),
                                last.lengthBytes() + place.lengthBytes(),
                                last.here()));
            } else {
                joined.add(place);
            }
        }
        return joined;
    }

    /** Whether the owner grants writing to all of it. */
    boolean isWritable() {
        return writable;
    }

    /**
     * Where a part of the owner's memory is mapped here; 0 if it was not given. Not to be touched
     * outside of {@link #use}.
     */
    long locate(long address, long lengthBytes) {
        for (Place place : places) {
            if (place.covers(address, lengthBytes)) {
                return place.here() + (address - place.address());
            }
        }
        return 0;
    }

    /** True from the moment at which somebody wants to unmap. */
    boolean isEnding() {
        return ending;
    }

    /**
     * Does something with the pages, which must be short: whoever wants to unmap waits for it.
     *
     * @return false if they are not mapped any more; nothing was done
     */
    synchronized boolean use(Runnable action) {
        if (ending) {
            return false;
        }
        action.run();
        return true;
    }

    /**
     * Enters some more pages into the page table, so that the first copy need not.
     *
     * @return whether there are more
     */
    synchronized boolean populateMore() {
        if (ending || populatedFiles == mapped.size()) {
            return false;
        }
        MemorySegment file = mapped.get(populatedFiles);
        long bytes = Math.min(POPULATE_BYTES, file.byteSize() - populatedBytes);
        try {
            Libc.advise(file.asSlice(populatedBytes, bytes), Libc.MADV_POPULATE_READ);
        } catch (LibcException e) { // Linux before 5.14: then the copies pay
            populatedFiles = mapped.size();
            return false;
        }
        populatedBytes += bytes;
        if (populatedBytes == file.byteSize()) {
            populatedBytes = 0;
            populatedFiles++;
        }
        return populatedFiles < mapped.size();
    }

    /**
     * Gives the pages up. Idempotent. Waits for a {@link #use} that is under way.
     *
     * @throws LibcException if the kernel refuses; they are of no use, but mapped
     */
    void unmap() {
        ending = true;
        synchronized (this) {
            while (!mapped.isEmpty()) {
                Libc.unmap(mapped.getLast());
                mapped.removeLast();
            }
        }
    }

    /** Whether a failed {@link #map} could not undo what it did. */
    static boolean isLeftBehind(TransportException failure) {
        return failure.getSuppressed().length > 0;
    }

    private static void unmapAfter(MemorySegment segment, TransportException failure) {
        try {
            Libc.unmap(segment);
        } catch (LibcException e) {
            failure.addSuppressed(e);
        }
    }
}
