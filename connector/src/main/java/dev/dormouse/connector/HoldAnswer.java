package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/**
 * What a holder said when it was asked whether it still holds a request's blocks for a reader.
 *
 * @param held whether it does, in the registration that it serves now
 * @param expected whether it does not yet, but may when the request has ended
 * @param untilNanos until when at least, on the asking rank's clock; meaningless if not held
 * @param epoch the registration in which it holds them
 * @param instanceId the process that answered
 */
record HoldAnswer(boolean held, boolean expected, long untilNanos, long epoch, String instanceId) {
    private static final int MAX_BYTES = 1_024;
    private static final int MAX_KEYS = 16;
    private static final String REQUEST = "request_id";
    private static final String EXPECTED = "expected";
    private static final String SECONDS = "held_seconds";
    private static final String EPOCH = "registration_epoch";
    private static final String INSTANCE = "instance_id";

    /**
     * The bytes of an answer.
     *
     * @param requestId what was asked about
     * @param seconds for which the blocks are held at least; negative if they are not
     * @param expected whether they may be when the request has ended
     */
    static byte[] encode(
            String requestId, double seconds, boolean expected, long epoch, String instanceId) {
        return new WireWriter()
                .map(5)
                .string(REQUEST)
                .string(requestId)
                .string(EXPECTED)
                .integer(expected ? 1 : 0)
                .string(SECONDS)
                .float64(seconds)
                .string(EPOCH)
                .integer(epoch)
                .string(INSTANCE)
                .string(instanceId)
                .bytes();
    }

    /**
     * Reads a peer's answer.
     *
     * @param claim what it was asked
     * @param askedNanos when it was asked: it answered no earlier
     * @throws WireException if the bytes are not an answer, or one about another request
     */
    static HoldAnswer decode(byte[] bytes, HoldQuestion claim, long askedNanos) {
        WireFields in =
                new WireFields("hold answer", bytes, MAX_BYTES)
                        .floats(SECONDS)
                        .integers(0, 1, EXPECTED)
                        .integers(0, Long.MAX_VALUE, EPOCH)
                        .strings(MAX_BYTES, REQUEST, INSTANCE)
                        .read(MAX_KEYS, MAX_BYTES);
        String requestId = in.string(REQUEST); // older peers do not tell it
        if (requestId != null && !requestId.equals(claim.requestId())) {
            throw in.fault("it is about another request");
        }
        double seconds = in.float64(SECONDS, Double.NaN);
        String instanceId = in.string(INSTANCE);
        if (!Double.isFinite(seconds) || instanceId == null) {
            throw in.fault("it does not say who holds the blocks for how long");
        }
        return new HoldAnswer(
                seconds >= 0,
                in.integer(EXPECTED, 0) == 1,
                askedNanos + (long) (seconds * 1e9),
                in.integer(EPOCH, 0),
                instanceId);
    }

    /** True if the process that answered holds the blocks, or may when their request has ended. */
    boolean knowsRequest() {
        return held || expected;
    }

    /** True if the blocks are held in the registration that {@code loaded} describes. */
    boolean confirms(RegistrationIdentity loaded) {
        return held && isOf(loaded);
    }

    /** True if they are, or may be when their request has ended. */
    boolean promises(RegistrationIdentity loaded) {
        return knowsRequest() && isOf(loaded);
    }

    private boolean isOf(RegistrationIdentity loaded) {
        return epoch == loaded.epoch()
                && epoch == loaded.newestEpoch()
                && instanceId.equals(loaded.instanceId());
    }

    /** True if {@code answer}, which may be missing, confirms the loaded registration. */
    static boolean isConfirmed(@Nullable HoldAnswer answer, RegistrationIdentity loaded) {
        return answer != null && answer.confirms(loaded);
    }
}
