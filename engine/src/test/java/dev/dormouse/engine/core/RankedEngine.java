package dev.dormouse.engine.core;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.RankView;
import dev.dormouse.model.SequenceChunk;
import dev.dormouse.model.gguf.GgufFile;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An engine over the default model, shared by ranks with memory of the machine, which is poisoned
 * when it comes. The test drives its loop, and makes steps of single ranks fail.
 */
final class RankedEngine implements AutoCloseable {
    static final int BLOCK_TOKENS = 16;
    static final int KV_BLOCKS = 24;

    /** The default model's layers, and bytes of a block over all layers and ranks. */
    static final int LAYERS = 30;

    static final long BLOCK_BYTES = LAYERS * 3L * BLOCK_TOKENS * 2 * 64 * 2;

    private static final int STEP_LIMIT = 1_000_000;

    /**
     * What fails until it is taken out, such as {@code map 1}: {@code unmap}, {@code map}, {@code
     * load}.
     */
    final Set<String> faults = new HashSet<>();

    final LocalEngine engine;

    /** Opens it on the test's own thread. */
    RankedEngine(GgufFile file, int ranks, @Nullable ConnectorHalves connector) {
        EngineConfig config =
                new EngineConfig(
                        "ranked",
                        KV_BLOCKS * BLOCK_BYTES,
                        BLOCK_TOKENS,
                        KvType.F16,
                        256,
                        4,
                        64,
                        10,
                        false,
                        true,
                        false,
                        false,
                        true);
        RankMemory.Source machine = MachineMemory.source(true, System::nanoTime, new MemoryFiles());
        engine =
                Engines.assemble(
                        config,
                        new FaultyModel(LlamaModel.open(file, 2, ranks)),
                        () -> new Engines.Text(Set.of(), _ -> SteppedEngine.NO_TEXT),
                        () -> connector,
                        new Engines.Surroundings(
                                System::nanoTime,
                                (rank, bytes) ->
                                        new FaultyMemory(rank, machine.reserve(rank, bytes)),
                                new SplittableRandom(1),
                                () -> {}));
        engine.core().open();
    }

    RecordingListener submit(
            String id, List<Integer> prompt, int maxTokens, @Nullable KvTransferParams params) {
        RecordingListener listener = new RecordingListener();
        engine.submit(
                new GenerationRequest(id, prompt, SamplingParameters.greedy(maxTokens), params),
                listener);
        return listener;
    }

    /** What it generates after a prompt that it computes by itself. */
    List<Integer> generate(String id, List<Integer> prompt, int maxTokens) {
        RecordingListener listener = submit(id, prompt, maxTokens, null);
        stepUntil(listener::isOver);
        listener.finished();
        return listener.tokens();
    }

    /** Steps until a transition has ended, well or not. */
    <T> CompletableFuture<T> ended(CompletableFuture<T> transition) {
        stepUntil(transition::isDone);
        return transition;
    }

    void step() {
        var _ = engine.core().step();
    }

    private void stepUntil(BooleanSupplier condition) {
        for (int i = 0; i < STEP_LIMIT && !condition.getAsBoolean(); i++) {
            step();
        }
        if (!condition.getAsBoolean()) {
            throw new AssertionError("no end after " + STEP_LIMIT + " steps");
        }
    }

    @Override
    public void close() {
        faults.clear();
        engine.core().close();
    }

    private void failIf(String step, int rank) {
        if (faults.contains(step + " " + rank)) {
            throw new ModelException(step + " " + rank + ": made to fail");
        }
    }

    private final class FaultyModel implements LanguageModel {
        private final LanguageModel model;

        FaultyModel(LanguageModel model) {
            this.model = model;
        }

        @Override
        public ModelConfig config() {
            return model.config();
        }

        @Override
        public int ranks() {
            return model.ranks();
        }

        @Override
        public long weightBytes(int rank) {
            return model.weightBytes(rank);
        }

        @Override
        public void loadWeights(int rank, MemorySegment target) {
            failIf("load", rank);
            model.loadWeights(rank, target);
        }

        @Override
        public Logits forward(List<SequenceChunk> batch, List<RankView> ranks) {
            return model.forward(batch, ranks);
        }

        @Override
        public void close() {
            model.close();
        }
    }

    private final class FaultyMemory implements RankMemory {
        private final int rank;
        private final RankMemory memory;

        FaultyMemory(int rank, RankMemory memory) {
            this.rank = rank;
            this.memory = memory;
        }

        @Override
        public long address(MemoryTag tag) {
            return memory.address(tag);
        }

        @Override
        public long lengthBytes(MemoryTag tag) {
            return memory.lengthBytes(tag);
        }

        @Override
        public boolean isAwake(MemoryTag tag) {
            return memory.isAwake(tag);
        }

        @Override
        public Use use(MemoryTag tag, String holder) {
            return memory.use(tag, holder);
        }

        @Override
        public long sleep(Set<MemoryTag> tags) {
            failIf("unmap", rank);
            return memory.sleep(tags);
        }

        @Override
        public long wake(Set<MemoryTag> tags) {
            failIf("map", rank);
            return memory.wake(tags);
        }

        @Override
        public void close() {
            memory.close();
        }
    }
}
