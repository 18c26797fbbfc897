package dev.dormouse.nixl;

import dev.dormouse.foreign.Libc;
import java.util.ArrayList;
import java.util.List;

/**
 * Defaults for UCX, the library under NIXL, which reads its settings from the process environment
 * when it is loaded. A variable that the user has set is never changed.
 *
 * <p>To be used first thing in {@code main}: glibc's environment has no lock for native readers.
 * Child processes inherit what is set here.
 */
public final class UcxEnvironment {
    private static final String PREFIX = "UCX_";

    /**
     * By default UCX may claim SIGSEGV, SIGBUS and SIGFPE ({@code src/ucs/config/global_opts.c}),
     * which HotSpot uses for null checks, safepoints and memory-mapped files.
     */
    private static final Setting LEAVE_SIGNALS = new Setting("UCX_ERROR_SIGNALS", "");

    /**
     * Registrations that nobody uses any more are given up in time. By default they gather without
     * a limit (vllm-project/vllm issue 24264); the value is vLLM's.
     */
    private static final Setting RELEASE_REGISTRATIONS =
            new Setting("UCX_RCACHE_MAX_UNRELEASED", "1024");

    private static final List<Setting> APPLIED = new ArrayList<>();
    private static boolean loaded;

    private UcxEnvironment() {}

    /**
     * One variable.
     *
     * @param name starts with {@code UCX_}
     * @param value what UCX shall read; may be empty
     */
    public record Setting(String name, String value) {
        /** Checks the name. */
        public Setting {
            if (!name.startsWith(PREFIX)) {
                throw new IllegalArgumentException(
                        "UCX setting refused: " + name + " does not start with " + PREFIX);
            }
        }
    }

    /**
     * Sets each variable that has no value yet.
     *
     * @return those that were set, in order; the others keep the user's value
     * @throws IllegalStateException when NIXL is loaded already, so that UCX would not see them
     */
    public static synchronized List<Setting> applyDefaults(List<Setting> defaults) {
        if (loaded) {
            throw new IllegalStateException(
                    "apply UCX defaults failed: NIXL is loaded already; apply them before the first agent");
        }
        return apply(defaults);
    }

    /** All that was set so far, this module's own defaults included. */
    public static synchronized List<Setting> applied() {
        return List.copyOf(APPLIED);
    }

    /** Called right before NIXL is loaded. */
    static synchronized void applyOwnDefaults() {
        apply(List.of(LEAVE_SIGNALS, RELEASE_REGISTRATIONS));
        loaded = true;
    }

    private static List<Setting> apply(List<Setting> defaults) {
        List<Setting> set = new ArrayList<>();
        for (Setting setting : defaults) {
            if (Libc.setEnvironmentIfAbsent(setting.name(), setting.value())) {
                set.add(setting);
            }
        }
        APPLIED.addAll(set);
        return List.copyOf(set);
    }
}
