package dev.dormouse.transport.nixl;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * What UCX must be told before memory under it may sleep.
 *
 * <p>Its registration cache keeps memory registered, and so pinned, after it was deregistered; with
 * pages replaced unseen it even hands back the registration of the old pages. A peer's {@code
 * cuda_ipc} import keeps slept device pages. Both are switched off, each only if the user has not
 * set it ({@code UCX_RCACHE_ENABLE}, {@code UCX_TLS}): by the backend's {@code engine_config}, so
 * for this agent alone and not for child processes.
 */
public final class UcxSleepDefaults {
    private static final Map<String, String> DEFAULTS = defaults();

    private UcxSleepDefaults() {}

    private static Map<String, String> defaults() {
        Map<String, String> defaults = new LinkedHashMap<>();
        defaults.put("RCACHE_ENABLE", "n");
        defaults.put("TLS", "^cuda_ipc");
        return defaults;
    }

    /**
     * The backend's parameters, with the defaults added to their {@code engine_config}.
     *
     * @param parameters the user's own; an {@code engine_config} there wins, setting by setting
     * @param environment the process's environment, which wins too
     */
    public static Map<String, String> applied(
            Map<String, String> parameters, Map<String, String> environment) {
        @Nullable String given = parameters.get("engine_config");
        StringJoiner config = new StringJoiner(",");
        if (given != null && !given.isBlank()) {
            config.add(given);
        }
        added(parameters, environment).forEach((name, value) -> config.add(name + "=" + value));
        Map<String, String> applied = new LinkedHashMap<>(parameters);
        if (config.length() > 0) {
            applied.put("engine_config", config.toString());
        }
        return applied;
    }

    /** Which defaults {@link #applied} adds; to be told to the operator once. */
    public static Map<String, String> added(
            Map<String, String> parameters, Map<String, String> environment) {
        Map<String, String> added = new LinkedHashMap<>();
        String given = "," + parameters.getOrDefault("engine_config", "") + ",";
        DEFAULTS.forEach(
                (name, value) -> {
                    if (!environment.containsKey("UCX_" + name)
                            && !given.contains("," + name + "=")) {
                        added.put(name, value);
                    }
                });
        return added;
    }
}
