package dev.dormouse.nixl;

import dev.dormouse.foreign.Libc;
import java.util.Map;
import java.util.TreeMap;

/**
 * Who handles the signals that HotSpot lives on: null checks, safepoints and stack guards are
 * SIGSEGV, faults of mapped files SIGBUS, division SIGFPE.
 *
 * @param handlers by signal name
 */
record SignalHandlers(Map<String, Long> handlers) {
    private static final Map<String, Integer> WATCHED =
            new TreeMap<>(Map.of("SIGBUS", 7, "SIGFPE", 8, "SIGSEGV", 11));

    static SignalHandlers current() {
        Map<String, Long> handlers = new TreeMap<>();
        WATCHED.forEach((name, number) -> handlers.put(name, Libc.signalHandler(number)));
        return new SignalHandlers(handlers);
    }

    /**
     * @throws NixlException naming the signals that have another handler now
     */
    void requireUnchanged(String agent, String plugin) {
        Map<String, Long> changed = new TreeMap<>(current().handlers);
        changed.entrySet().removeAll(handlers.entrySet());
        if (!changed.isEmpty()) {
            throw new NixlException(
                    "create backend",
                    agent,
                    null,
                    plugin
                            + " replaced the JVM's handlers of "
                            + changed.keySet()
                            + ", so this process is not safe any more; start it with UCX_ERROR_SIGNALS set to nothing");
        }
    }
}
