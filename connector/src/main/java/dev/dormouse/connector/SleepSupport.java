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

    private static final List<String> PROVEN_BACKENDS = List.of("UCX");

    private SleepSupport() {}

    /**
     * Whether an engine may sleep.
     *
     * @param connector the connector's name
     * @param backends NIXL backends as configured, in order
     * @return null if it may; otherwise why not, naming the setting
     */
    public static @Nullable String refusal(String connector, List<String> backends) {
        if (!connector.equals(PULL) && !connector.equals(NIXL)) {
            return "--enable-sleep-mode: connector "
                    + connector
                    + " is not proven to survive a sleep; use "
                    + PULL
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
