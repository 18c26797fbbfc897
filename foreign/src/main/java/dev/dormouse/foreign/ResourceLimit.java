package dev.dormouse.foreign;

/**
 * A limit that the kernel puts on this process.
 *
 * @param soft what is enforced now; {@link #UNLIMITED} when nothing is
 * @param hard how far the process may raise {@code soft}; {@link #UNLIMITED} when any far
 */
public record ResourceLimit(long soft, long hard) {
    /** Stands for {@code RLIM_INFINITY}. */
    public static final long UNLIMITED = Long.MAX_VALUE;
}
