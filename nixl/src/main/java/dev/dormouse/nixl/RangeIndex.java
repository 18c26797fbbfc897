package dev.dormouse.nixl;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Which registration holds an address. Ranges of one device never overlap. */
final class RangeIndex {
    private record Space(MemoryType type, long deviceId) {}

    private record Entry(long end, Registration owner) {}

    private final Map<Space, TreeMap<Long, Entry>> spaces = new HashMap<>();

    /**
     * Checks that the ranges overlap neither each other nor a registration. NIXL does not: it would
     * find the wrong one of two, or free one twice.
     *
     * @throws IllegalArgumentException naming both ranges
     */
    void checkFree(MemoryType type, List<MemoryRange> ranges) {
        Map<Long, TreeMap<Long, MemoryRange>> accepted = new HashMap<>();
        for (MemoryRange range : ranges) {
            long start = range.address();
            long end = start + range.lengthBytes();
            TreeMap<Long, Entry> space = spaces.get(new Space(type, range.deviceId()));
            Map.@Nullable Entry<Long, Entry> before = space == null ? null : space.lowerEntry(end);
            if (before != null && before.getValue().end() > start) {
                throw overlap(range, before.getValue().owner().toString());
            }
            TreeMap<Long, MemoryRange> siblings =
                    accepted.computeIfAbsent(range.deviceId(), device -> new TreeMap<>());
            Map.@Nullable Entry<Long, MemoryRange> sibling = siblings.lowerEntry(end);
            if (sibling != null && sibling.getKey() + sibling.getValue().lengthBytes() > start) {
                throw overlap(range, sibling.getValue().toString());
            }
            siblings.put(start, range);
        }
    }

    void add(MemoryType type, List<MemoryRange> ranges, Registration owner) {
        for (MemoryRange range : ranges) {
            spaces.computeIfAbsent(new Space(type, range.deviceId()), space -> new TreeMap<>())
                    .put(range.address(), new Entry(range.address() + range.lengthBytes(), owner));
        }
    }

    void remove(MemoryType type, List<MemoryRange> ranges) {
        for (MemoryRange range : ranges) {
            Space key = new Space(type, range.deviceId());
            TreeMap<Long, Entry> space = spaces.get(key);
            if (space != null) {
                space.remove(range.address());
                if (space.isEmpty()) {
                    spaces.remove(key);
                }
            }
        }
    }

    /** All ranges of one kind of memory. */
    List<RegisteredRange> ranges(MemoryType type) {
        List<RegisteredRange> ranges = new ArrayList<>();
        spaces.forEach(
                (space, entries) -> {
                    if (space.type() == type) {
                        entries.forEach(
                                (start, entry) ->
                                        ranges.add(
                                                new RegisteredRange(
                                                        start,
                                                        entry.end() - start,
                                                        space.deviceId())));
                    }
                });
        return ranges;
    }

    /**
     * The registrations that hold the blocks.
     *
     * @throws IllegalArgumentException naming the first block that no registration holds whole
     */
    List<Registration> owners(BlockList blocks) {
        Set<Registration> owners = new LinkedHashSet<>();
        blocks.forEachRun(
                (address, stride, length, count, device) -> {
                    TreeMap<Long, Entry> space = spaces.get(new Space(blocks.type(), device));
                    long runEnd = address + (count - 1L) * stride + length;
                    Entry whole = covering(space, address, runEnd);
                    if (whole != null) {
                        owners.add(whole.owner());
                        return;
                    }
                    for (int i = 0; i < count; i++) {
                        long start = address + i * stride;
                        Entry entry = covering(space, start, start + length);
                        if (entry == null) {
                            throw new IllegalArgumentException(
                                    "blocks refused: no registration holds %s 0x%x+%d/device %d"
                                            .formatted(blocks.type(), start, length, device));
                        }
                        owners.add(entry.owner());
                    }
                });
        return List.copyOf(owners);
    }

    private static @Nullable Entry covering(
            @Nullable NavigableMap<Long, Entry> space, long start, long end) {
        if (space == null) {
            return null;
        }
        Map.@Nullable Entry<Long, Entry> before = space.floorEntry(start);
        return before != null && before.getValue().end() >= end ? before.getValue() : null;
    }

    private static IllegalArgumentException overlap(MemoryRange range, String other) {
        return new IllegalArgumentException(
                "register memory refused: " + range + " overlaps " + other);
    }
}
