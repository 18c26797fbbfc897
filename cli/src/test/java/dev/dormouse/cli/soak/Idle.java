package dev.dormouse.cli.soak;

import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.time.Duration;
import java.util.List;

/** Engines that have nothing to do, and hold nothing for anybody. */
final class Idle {
    private static final List<String> ZERO =
            List.of(
                    "vllm:num_requests_running",
                    "vllm:num_requests_waiting",
                    "dormouse:num_requests_waiting_for_remote_kv",
                    "dormouse:num_requests_held_for_remote",
                    "dormouse:kv_blocks_held_for_remote",
                    "dormouse:kv_blocks_quarantined",
                    "vllm:kv_cache_usage_perc");

    private Idle() {}

    /** Waits until both engines of a fleet are so: no request, and every block free. */
    static void await(SoakFleet fleet, Duration limit) {
        for (EngineProcess engine : List.of(fleet.prefill(), fleet.decode())) {
            Await.until(
                    engine.name() + " has no request and all its blocks",
                    limit,
                    () -> busy(engine).isEmpty(),
                    () -> busy(engine));
        }
    }

    /** The lines of an engine's metrics that say that it is not at rest. */
    private static List<String> busy(EngineProcess engine) {
        try {
            return Wire.get(engine.endpoint().base().getPort(), "/metrics")
                    .lines()
                    .filter(line -> ZERO.stream().anyMatch(line::startsWith))
                    .filter(line -> !line.endsWith(" 0.0") && !line.endsWith(" 0"))
                    .toList();
        } catch (IOException e) {
            return List.of(e.toString());
        }
    }
}
