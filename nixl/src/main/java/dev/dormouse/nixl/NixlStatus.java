package dev.dormouse.nixl;

/**
 * A status of NIXL's C interface ({@code nixl_capi_status_t}). Codes that this version does not
 * know are kept as they are. Most failures inside NIXL are folded into {@link #BACKEND}; NIXL's own
 * log line on standard error tells more.
 *
 * @param code the number
 */
public record NixlStatus(int code) {
    /** The operation is complete. */
    public static final NixlStatus SUCCESS = new NixlStatus(0);

    /** A transfer is under way. */
    public static final NixlStatus IN_PROGRESS = new NixlStatus(1);

    /** An argument was refused. */
    public static final NixlStatus INVALID_PARAM = new NixlStatus(-1);

    /** Anything that has no code of its own, a lost peer among it. */
    public static final NixlStatus BACKEND = new NixlStatus(-2);

    /** The object is not in a state that allows the operation. */
    public static final NixlStatus INVALID_STATE = new NixlStatus(-3);

    /** An exception inside NIXL. */
    public static final NixlStatus EXCEPTION = new NixlStatus(-4);

    /** Telemetry is switched off. */
    public static final NixlStatus NO_TELEMETRY = new NixlStatus(-5);

    /** The peer's metadata is not loaded, or no backend serves the request. */
    public static final NixlStatus NOT_FOUND = new NixlStatus(-6);

    /** As {@code NOT_FOUND (-6)}, or {@code status (-77)} for an unknown code. */
    @Override
    public String toString() {
        return name() + " (" + code + ")";
    }

    private String name() {
        return switch (code) {
            case 0 -> "SUCCESS";
            case 1 -> "IN_PROGRESS";
            case -1 -> "INVALID_PARAM";
            case -2 -> "BACKEND";
            case -3 -> "INVALID_STATE";
            case -4 -> "EXCEPTION";
            case -5 -> "NO_TELEMETRY";
            case -6 -> "NOT_FOUND";
            default -> "status";
        };
    }
}
