package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.Fleet;
import dev.dormouse.cli.fleet.Progress;
import java.util.ArrayList;
import java.util.List;

/**
 * The cases in which engines sleep idle: each engine, both at once, tags in either order, and the
 * KV cache alone.
 */
final class SleepCases {
    private final Fleet fleet;
    private final Oracle oracle;
    private final DemoOptions options;
    private final Progress progress;
    private final double controlMillis;

    SleepCases(
            Fleet fleet,
            Oracle oracle,
            DemoOptions options,
            Progress progress,
            double controlMillis) {
        this.fleet = fleet;
        this.oracle = oracle;
        this.options = options;
        this.progress = progress;
        this.controlMillis = controlMillis;
    }

    List<CaseResult> run() {
        EngineProcess prefill = fleet.prefill();
        EngineProcess decode = fleet.decode();
        List<EngineProcess> both = List.of(prefill, decode);
        List<CaseResult> results = new ArrayList<>();
        results.add(
                run("sleep-decode", List.of(decode), options.cycles(), plain(List.of(decode), 1)));
        results.add(
                run(
                        "sleep-prefill",
                        List.of(prefill),
                        options.cycles(),
                        plain(List.of(prefill), 1)));
        results.add(run("sleep-both", both, options.cycles(), plain(both, 2)));
        results.add(run("wake-weights-first", both, 1, byTag(both, "weights", "kv_cache")));
        results.add(run("wake-kv-first", both, 1, byTag(both, "kv_cache", "weights")));
        results.add(run("release-kv", both, 1, kvCacheOnly(both)));
        return results;
    }

    private CaseResult run(
            String name, List<EngineProcess> sleepers, int cycles, SleepCase.Cycle cycle) {
        return new SleepCase(name, fleet, oracle, sleepers, options.kvCacheMiB(), controlMillis)
                .run(cycles, cycle, progress);
    }

    /** Sleep at a level, and wake. */
    static SleepCase.Cycle plain(List<EngineProcess> sleepers, int level) {
        return new SleepCase.Cycle() {
            @Override
            public void sleep() {
                sleepers.parallelStream().forEach(engine -> engine.sleep(level, "wait"));
            }

            @Override
            public void wake() {
                sleepers.parallelStream().forEach(EngineProcess::wake);
            }
        };
    }

    /** Level 2, so that the weights really have to come back. */
    private static SleepCase.Cycle byTag(
            List<EngineProcess> sleepers, String first, String second) {
        return new SleepCase.Cycle() {
            @Override
            public void sleep() {
                sleepers.parallelStream().forEach(engine -> engine.sleep(2, "wait"));
            }

            @Override
            public void wake() {
                sleepers.parallelStream().forEach(engine -> engine.wake(first, true));
                sleepers.parallelStream().forEach(engine -> engine.wake(second, false));
            }
        };
    }

    private static SleepCase.Cycle kvCacheOnly(List<EngineProcess> sleepers) {
        return new SleepCase.Cycle() {
            @Override
            public void sleep() {
                sleepers.parallelStream().forEach(EngineProcess::releaseKvCache);
            }

            @Override
            public void wake() {
                sleepers.parallelStream().forEach(EngineProcess::wakeKvCacheAndResume);
            }
        };
    }
}
