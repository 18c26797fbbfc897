package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
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

    Registration(NixlAgent agent, MemoryType type, List<MemoryRange> ranges, MemorySegment list) {
        super(agent, List.of());
        this.type = type;
        this.ranges = ranges;
        this.list = list;
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
        agent.deregister(this, list);
    }
}
