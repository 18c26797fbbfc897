package dev.dormouse.connector;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Whether an engine with a given connector may sleep. Checked once, at start-up: what is not proven
 * is refused.
 */
public final class SleepSupport {
    /** The pull connector over NIXL; vLLM's name for it. */
    public static final String PULL = "NixlPullConnector";

    /** vLLM's older name of the pull connector. */
    public static final String NIXL = "NixlConnector";

    /** The push connector over NIXL; vLLM's name for it. */
    public static final String PUSH = "NixlPushConnector";

    /** Several connectors in one; vLLM's name for it. */
    public static final String MULTI = "MultiConnector";

    private static final List<String> PROVEN = List.of(PULL, NIXL, PUSH);
    private static final List<String> PROVEN_BACKENDS = List.of("UCX");

    private SleepSupport() {}

    /**
     * Whether an engine with several connectors may sleep: if every one of them may.
     *
     * @param connectors their names
     * @param backends NIXL backends of each
     * @return null if it may; otherwise why not, naming the connector's place
     */
    public static @Nullable String refusalOfMulti(
            List<String> connectors, List<List<String>> backends) {
        if (connectors.isEmpty()) {
            return "--enable-sleep-mode: " + MULTI + " has no connectors";
        }
        for (int i = 0; i < connectors.size(); i++) {
            String refusal = refusal(connectors.get(i), backends.get(i));
            if (refusal != null) {
                return refusal + "; it is number " + (i + 1) + " of " + MULTI;
            }
        }
        return null;
    }

    /**
     * Whether an engine may sleep.
     *
     * @param connector the connector's name
     * @param backends NIXL backends as configured, in order
     * @return null if it may; otherwise why not, naming the setting
     */
    public static @Nullable String refusal(String connector, List<String> backends) {
        if (!PROVEN.contains(connector)) {
            return "--enable-sleep-mode: connector "
                    + connector
                    + " is not proven to survive a sleep; use "
                    + PULL
                    + " or "
                    + PUSH
                    + " (kv_connector), or start without sleep mode";
        }
        if (!backends.equals(PROVEN_BACKENDS)) {
            return "--enable-sleep-mode: "
                    + connector
                    + " with backends="
                    + backends
                    + " is not proven to survive a sleep; set backends to "
                    + PROVEN_BACKENDS
                    + " (kv_connector_extra_config), or start without sleep mode";
        }
        return null;
    }
}
