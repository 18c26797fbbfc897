package dev.dormouse.cuda;

/** A GPU's generation, as 9.0 for an H200. */
public record ComputeCapability(int major, int minor) implements Comparable<ComputeCapability> {
    @Override
    public int compareTo(ComputeCapability other) {
        return major != other.major
                ? Integer.compare(major, other.major)
                : Integer.compare(minor, other.minor);
    }

    /** As {@code 9.0}. */
    @Override
    public String toString() {
        return major + "." + minor;
    }
}
