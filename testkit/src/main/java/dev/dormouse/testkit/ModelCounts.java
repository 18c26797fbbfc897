package dev.dormouse.testkit;

/**
 * What a {@link ModelTransport} holds; all zero once everything was given back.
 *
 * @param registrations live memory registrations
 * @param lists prepared lists, local and remote
 * @param peers loaded peers
 * @param transfers reads that were not released
 */
public record ModelCounts(int registrations, int lists, int peers, int transfers) {
    /** Nothing is held. */
    public static final ModelCounts NONE = new ModelCounts(0, 0, 0, 0);
}
