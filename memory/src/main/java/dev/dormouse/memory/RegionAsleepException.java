package dev.dormouse.memory;

/** A region, or all of a tag, was to be used whose memory is asleep. */
public final class RegionAsleepException extends MemoryException {
    private static final long serialVersionUID = 1L;

    private final String region;
    private final MemoryTag tag;

    RegionAsleepException(String operation, String region, MemoryTag tag) {
        super(
                "%s %s refused: %s is asleep; wake it first"
                        .formatted(operation, region, tag.label()));
        this.region = region;
        this.tag = tag;
    }

    /** The region's name, or the tag's if all of it was to be used. */
    public String region() {
        return region;
    }

    /** The tag that is asleep. */
    public MemoryTag tag() {
        return tag;
    }
}
