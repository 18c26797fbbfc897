package dev.dormouse.memory;

import java.util.List;

/** Memory cannot go while somebody uses it. Nothing was changed. */
public final class MemoryInUseException extends MemoryException {
    private static final long serialVersionUID = 1L;

    private final MemoryTag tag;
    private final List<String> holders;

    MemoryInUseException(String operation, MemoryTag tag, List<String> holders) {
        super(
                "%s %s refused: in use by %s; close the leases first"
                        .formatted(operation, tag.label(), String.join(", ", holders)));
        this.tag = tag;
        this.holders = List.copyOf(holders);
    }

    /** The tag in use. */
    public MemoryTag tag() {
        return tag;
    }

    /** Who uses it: the holders of its live leases, each with the region's name. */
    public List<String> holders() {
        return holders;
    }
}
