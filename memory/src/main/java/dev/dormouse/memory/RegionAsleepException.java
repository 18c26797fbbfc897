package dev.dormouse.memory;

/** A region was to be used whose memory is asleep. */
public final class RegionAsleepException extends MemoryException {
    private static final long serialVersionUID = 1L;

    private final String region;
    private final MemoryTag tag;

    RegionAsleepException(String region, MemoryTag tag) {
        super("lease %s refused: %s is asleep; wake it first".formatted(region, tag.label()));
        this.region = region;
        this.tag = tag;
    }

    /** The region's name. */
    public String region() {
        return region;
    }

    /** The tag that is asleep. */
    public MemoryTag tag() {
        return tag;
    }
}
