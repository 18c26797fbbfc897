package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory that NIXL may move. Its pages must stay mapped until {@link #close()} has returned: a
 * transport that emulates remote reads touches them in this process, and others keep them pinned.
 *
 * <p>Closing deregisters; it is refused while prepared lists or transfers use the memory. When NIXL
 * refuses, everything stays registered.
 */
public final class Registration extends NixlObject {
    private final MemoryType type;
    private final List<MemoryRange> ranges;
    private final MemorySegment list;
    private final RangeIndex index;

    private Registration(
            NixlAgent agent,
            RangeIndex index,
            MemoryType type,
            List<MemoryRange> ranges,
            MemorySegment list) {
        super(agent, List.of());
        this.index = index;
        this.type = type;
        this.ranges = ranges;
        this.list = list;
    }

    /** Checks and registers, and enters the ranges into the index. */
    static Registration create(
            NixlAgent agent, RangeIndex index, MemoryType type, List<MemoryRange> ranges) {
        if (!type.isAddressable() || ranges.isEmpty()) {
            throw new IllegalArgumentException(
                    "register memory refused: type=" + type + " ranges=" + ranges.size());
        }
        for (MemoryRange range : ranges) {
            if (!range.segment().scope().isAlive()) {
                throw new IllegalStateException("register memory refused: " + range + " is closed");
            }
        }
        index.checkFree(type, ranges);
        MemorySegment list = agent.nativeAgent.rangeList(type, ranges);
        try {
            agent.nativeAgent.register(list, type + " " + ranges);
        } catch (NixlStatusException e) {
            agent.nativeAgent.freeRanges(list);
            throw e;
        }
        Registration registration = new Registration(agent, index, type, ranges, list);
        index.add(type, ranges, registration);
        return registration;
    }

    static byte[] partialMetadata(NixlAgent agent, List<Registration> registrations) {
        String operation = "get partial local metadata";
        List<MemoryRange> ranges = new ArrayList<>();
        for (Registration registration : registrations) {
            registration.requireUsableBy(agent, operation);
            ranges.addAll(registration.ranges);
        }
        if (registrations.stream().map(Registration::type).distinct().count() != 1) {
            throw new IllegalArgumentException(
                    operation + " refused: not one kind of memory: " + registrations);
        }
        MemorySegment list = agent.nativeAgent.rangeList(registrations.getFirst().type, ranges);
        try {
            return agent.nativeAgent.partialMetadata(list, registrations.toString());
        } finally {
            agent.nativeAgent.freeRanges(list);
        }
    }

    /** The kind of memory. */
    public MemoryType type() {
        return type;
    }

    /** What was registered. */
    public List<MemoryRange> ranges() {
        return ranges;
    }

    @Override
    String kind() {
        return "registration";
    }

    @Override
    void free() {
        agent.nativeAgent.deregister(list, toString());
        agent.nativeAgent.freeRanges(list);
        index.remove(type, ranges);
    }
}
