package dev.dormouse.engine.core;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.output.TextDecoder;
import dev.dormouse.model.KvType;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/** An engine over {@link HashModel} whose loop the test drives, or starts. */
final class EngineHarness implements AutoCloseable {
    private static final int STEP_LIMIT = 20_000;

    final EngineConfig config;
    final HashModel model;
    final LocalEngine engine;
    final AtomicInteger heapTrims = new AtomicInteger();

    /** How far the engine's clock is before the machine's. */
    final AtomicLong skippedNanos = new AtomicLong();

    /** A token that has no text. */
    int undecodable = -1;

    private boolean open;

    EngineHarness(EngineConfig config, @Nullable FakeConnector connector) {
        this(
                config,
                connector == null ? 1 : connector.ranks.size(),
                connector == null ? null : connector.halves());
    }

    EngineHarness(EngineConfig config, int ranks, @Nullable ConnectorHalves connector) {
        this.config = ofRanks(config, ranks);
        this.model = new HashModel(ranks);
        this.engine =
                Engines.assemble(
                        this.config,
                        model,
                        () -> new Engines.Text(Set.of(), _ -> new NumberDecoder()),
                        () -> connector,
                        new Engines.Surroundings(
                                () -> System.nanoTime() + skippedNanos.get(),
                                MachineMemory.source(
                                        config.poisonWokenMemory(),
                                        System::nanoTime,
                                        new MemoryFiles()),
                                new SplittableRandom(1),
                                heapTrims::incrementAndGet));
    }

    /** Settings under which everything fits. */
    static EngineConfig roomy() {
        return config(64, 8, 64, true);
    }

    /** Settings that matter to the scheduler, with sleep mode and poison. */
    static EngineConfig config(
            int kvBlocks, int maxSequences, int maxBatchedTokens, boolean prefixCaching) {
        return new EngineConfig(
                "hash",
                kvBlocks * HashModel.SHAPE.blockBytesAllLayers(),
                HashModel.BLOCK_TOKENS,
                KvType.F16,
                Math.min(200, kvBlocks * HashModel.BLOCK_TOKENS + 1),
                maxSequences,
                maxBatchedTokens,
                1000,
                prefixCaching,
                true,
                false,
                true,
                true);
    }

    /** The same settings with memory for as many blocks on each rank. */
    private static EngineConfig ofRanks(EngineConfig config, int ranks) {
        return changed(
                config,
                config.kvCacheBytes() * ranks,
                config.maxWaiting(),
                config.holdRequestsWhileAsleep(),
                config.recomputeFailedLoads());
    }

    /** The same settings, but requests fail whose KV cannot be read. */
    static EngineConfig failingLoads(EngineConfig config) {
        return changed(
                config,
                config.kvCacheBytes(),
                config.maxWaiting(),
                config.holdRequestsWhileAsleep(),
                false);
    }

    /** The same settings, but requests that arrive asleep wait. */
    static EngineConfig holding(EngineConfig config, int maxWaiting) {
        return changed(
                config, config.kvCacheBytes(), maxWaiting, true, config.recomputeFailedLoads());
    }

    private static EngineConfig changed(
            EngineConfig config,
            long kvCacheBytes,
            int maxWaiting,
            boolean holdRequestsWhileAsleep,
            boolean recomputeFailedLoads) {
        return new EngineConfig(
                config.servedModelName(),
                kvCacheBytes,
                config.blockTokens(),
                config.kvType(),
                config.maxModelLength(),
                config.maxSequences(),
                config.maxBatchedTokens(),
                maxWaiting,
                config.prefixCaching(),
                config.sleepMode(),
                holdRequestsWhileAsleep,
                recomputeFailedLoads,
                config.poisonWokenMemory());
    }

    /** Opens the engine on the test's own thread. */
    EngineHarness opened() {
        engine.core().open();
        open = true;
        return this;
    }

    static PauseMode anyMode(RandomGenerator random) {
        return List.of(PauseMode.values()).get(random.nextInt(3));
    }

    HashModel model() {
        return model;
    }

    RecordingListener submit(String id, List<Integer> prompt, int maxTokens) {
        return submit(id, prompt, maxTokens, null);
    }

    RecordingListener submit(
            String id, List<Integer> prompt, int maxTokens, @Nullable KvTransferParams params) {
        return submit(id, prompt, SamplingParameters.greedy(maxTokens), params);
    }

    /** Submits a request of a priority. */
    RecordingListener submit(String id, List<Integer> prompt, int maxTokens, int priority) {
        RecordingListener listener = new RecordingListener();
        engine.submit(
                new GenerationRequest(
                        id, id, prompt, SamplingParameters.greedy(maxTokens), null, priority),
                listener);
        return listener;
    }

    RecordingListener submit(
            String id,
            List<Integer> prompt,
            SamplingParameters sampling,
            @Nullable KvTransferParams params) {
        RecordingListener listener = new RecordingListener();
        engine.submit(new GenerationRequest(id, prompt, sampling, params), listener);
        return listener;
    }

    void step() {
        var _ = engine.core().step();
    }

    /** Steps until nothing is left to do now. */
    void settle() {
        for (int i = 0; i < STEP_LIMIT; i++) {
            if (engine.core().step() == 0) {
                return;
            }
        }
        throw new AssertionError("still busy after " + STEP_LIMIT + " steps");
    }

    void stepUntil(String what, BooleanSupplier condition) {
        for (int i = 0; i < STEP_LIMIT; i++) {
            if (condition.getAsBoolean()) {
                return;
            }
            step();
        }
        throw new AssertionError("never saw: " + what);
    }

    /** Submits, steps to the end, and answers what was generated. */
    List<Integer> generate(String id, List<Integer> prompt, int maxTokens) {
        RecordingListener listener = submit(id, prompt, maxTokens);
        stepUntil(id + " ends", listener::isOver);
        listener.finished();
        return listener.tokens();
    }

    /** Steps until a transition is made. */
    TransitionReport made(CompletableFuture<TransitionReport> outcome) {
        stepUntil("the transition's end", outcome::isDone);
        return outcome.join();
    }

    /** Steps until a transition is refused. */
    TransitionRefusedException refused(CompletableFuture<TransitionReport> outcome) {
        stepUntil("the transition's end", outcome::isDone);
        try {
            throw new AssertionError("expected a refusal, but got " + outcome.join());
        } catch (CompletionException e) {
            if (e.getCause() instanceof TransitionRefusedException refusal) {
                return refusal;
            }
            throw e;
        }
    }

    int freeBlocks() {
        return engine.statistics().kvBlocksFree();
    }

    int kvBlocks() {
        return engine.info().kvBlocks();
    }

    @Override
    public void close() {
        if (open) {
            engine.core().close();
        } else {
            engine.close();
        }
    }

    /** Text of tokens as numbers with a space behind each. */
    private final class NumberDecoder implements TextDecoder {
        @Override
        public String push(int tokenId) {
            if (tokenId == undecodable) {
                throw new IllegalStateException("token " + tokenId + " has no text");
            }
            return tokenId + " ";
        }

        @Override
        public String finish() {
            return "";
        }
    }
}
