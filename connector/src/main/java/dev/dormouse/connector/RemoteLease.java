package dev.dormouse.connector;

/**
 * For how long a producer holds a request's blocks, as {@code kv_transfer_params} tell. Untrusted.
 *
 * @param deadlineSeconds until when, on the producer's clock, unless a reader renews; NaN if the
 *     parameters do not tell
 * @param lengthSeconds how long a hold lasts that is not renewed; 0 if the parameters do not tell
 */
public record RemoteLease(double deadlineSeconds, double lengthSeconds) {
    /** The parameters tell nothing, as those of vLLM's prefill engines. */
    public static final RemoteLease UNKNOWN = new RemoteLease(Double.NaN, 0);

    boolean tellsDeadline() {
        return !Double.isNaN(deadlineSeconds);
    }
}
