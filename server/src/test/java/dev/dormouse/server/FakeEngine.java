package dev.dormouse.server;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.RouteStatistics;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationListener;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.Histogram;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.model.ModelConfig;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** An engine that answers every request with a script, and remembers what it was asked. */
final class FakeEngine implements Engine {
    private static final ModelConfig MODEL =
            new ModelConfig(
                    "fake", "llama", 49152, 8, 1, 1, 1, 8, 8, 4096, 8, 10000f, 1e-5f, List.of());

    final List<GenerationRequest> requests = new CopyOnWriteArrayList<>();
    final List<GenerationListener> listeners = new CopyOnWriteArrayList<>();
    final List<KvTransferParams> declined = new CopyOnWriteArrayList<>();
    final List<String> aborted = new CopyOnWriteArrayList<>();
    final List<String> transitions = new CopyOnWriteArrayList<>();
    volatile Function<GenerationRequest, List<GenerationEvent>> script = request -> List.of();

    /** Nothing was ever asked of it. */
    volatile boolean idle;

    volatile EngineState state = new EngineState(Phase.AWAKE, 0, Set.of(), false);
    volatile @Nullable TransitionRefusedException refusal;

    /** What a transition waits for. */
    volatile @Nullable CompletableFuture<TransitionReport> pending;

    volatile EngineStatistics.Transfers transferSizes =
            new EngineStatistics.Transfers(
                    new Histogram(List.of(.005), List.of(0L, 0L), 0),
                    new Histogram(List.of(.001), List.of(0L, 0L), 0),
                    new Histogram(List.of(2048.0), List.of(0L, 0L), 0),
                    new Histogram(List.of(10.0), List.of(0L, 0L), 0));

    @Override
    public EngineInfo info() {
        return new EngineInfo("fake-model", MODEL, 1000, 10, 16, true);
    }

    @Override
    public void submit(GenerationRequest request, GenerationListener listener) {
        listeners.add(listener);
        requests.add(request);
        script.apply(request).forEach(listener::onEvent);
    }

    @Override
    public void decline(KvTransferParams params) {
        declined.add(params);
    }

    @Override
    public void abort(String requestId) {
        aborted.add(requestId);
    }

    @Override
    public CompletableFuture<TransitionReport> sleep(int level, PauseMode mode) {
        return transition("sleep " + level + " " + mode, level, Set.of(WakeTag.KV_CACHE));
    }

    @Override
    public CompletableFuture<TransitionReport> wake(@Nullable Set<WakeTag> tags) {
        return transition("wake " + tags, -1, tags == null ? Set.of() : tags);
    }

    @Override
    public CompletableFuture<TransitionReport> releaseKvCacheMemory() {
        return transition("release", -1, Set.of(WakeTag.KV_CACHE));
    }

    @Override
    public CompletableFuture<TransitionReport> pause(PauseMode mode, boolean clearCache) {
        return transition("pause " + mode + " " + clearCache, -1, Set.of());
    }

    @Override
    public CompletableFuture<TransitionReport> resume() {
        return transition("resume", -1, Set.of());
    }

    @Override
    public CompletableFuture<TransitionReport> resetPrefixCache() {
        return transition("reset", -1, Set.of());
    }

    @Override
    public CompletableFuture<TransitionReport> windDown() {
        return transition("wind down", -1, Set.of());
    }

    private CompletableFuture<TransitionReport> transition(
            String what, int level, Set<WakeTag> tags) {
        transitions.add(what);
        TransitionRefusedException refused = refusal;
        CompletableFuture<TransitionReport> held = pending;
        if (held != null) {
            return held;
        }
        return refused != null
                ? CompletableFuture.failedFuture(refused)
                : CompletableFuture.completedFuture(
                        new TransitionReport(true, state, level, tags, 4096, Map.of("unmap", 0.5)));
    }

    @Override
    public EngineState state() {
        return state;
    }

    @Override
    public EngineStatistics statistics() {
        if (idle) {
            return new EngineStatistics(
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    10,
                    10,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    TransferStatistics.NONE,
                    transferSizes,
                    transitionSeconds(0));
        }
        TransferStatistics transfers =
                new TransferStatistics(
                        List.of(),
                        1,
                        10,
                        200,
                        3_000,
                        4,
                        9,
                        5,
                        60,
                        11,
                        7,
                        8,
                        13,
                        Map.of("local", new RouteStatistics(14, 15, 2)));
        return new EngineStatistics(
                1,
                2,
                3,
                4,
                6,
                7,
                10,
                5,
                100,
                60,
                40,
                2,
                50,
                1,
                90,
                30,
                7,
                transfers,
                transferSizes,
                transitionSeconds(1));
    }

    private static Map<String, Histogram> transitionSeconds(long sleeps) {
        List<Double> bounds = List.of(.01, .1, 1.0);
        Histogram none = new Histogram(bounds, List.of(0L, 0L, 0L, 0L), 0);
        return Map.of(
                "sleep",
                new Histogram(bounds, List.of(0L, 0L, sleeps, 0L), 0.2 * sleeps),
                "release_kv_cache_memory",
                none,
                "wake",
                none);
    }

    @Override
    public void close() {}
}
