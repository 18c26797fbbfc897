package dev.dormouse.engine.core;

import dev.dormouse.benchmarks.Timed;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.model.KvType;
import java.util.Collections;
import java.util.List;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.TearDown;

/**
 * What a step of an engine costs beside the model's computation: inbox, scheduler, batch, sampling
 * from a few tokens, events. A sequence that ends is followed by another one.
 */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class EngineStepBenchmark extends Timed {
    private static final List<Integer> PROMPT = Collections.nCopies(64, 1);
    private static final int OUTPUT_TOKENS = 128;
    private static final int LONGEST = 256;
    private static final int BLOCK_TOKENS = 16;

    /** That are computed at once. */
    @Param({"1", "16", "128"})
    public int sequences;

    private SteppedEngine engine;
    private long requests;

    /** Opens an engine with sequences. */
    @Setup
    public void setUp() {
        InstantModel model = new InstantModel(sequences);
        long blocks = (long) sequences * LONGEST / BLOCK_TOKENS;
        EngineConfig config =
                new EngineConfig(
                        "instant",
                        blocks * model.kvCacheShape(BLOCK_TOKENS, KvType.F16).blockBytesAllLayers(),
                        BLOCK_TOKENS,
                        KvType.F16,
                        LONGEST,
                        sequences,
                        2048,
                        sequences,
                        true,
                        false,
                        false,
                        true,
                        false);
        engine =
                SteppedEngine.open(
                        config,
                        model,
                        null,
                        Engines.Surroundings.ofMachine(config, new MemoryFiles()));
        for (int i = 0; i < sequences; i++) {
            submit();
        }
    }

    private void submit() {
        engine.engine()
                .submit(
                        new GenerationRequest(
                                "r" + requests++,
                                PROMPT,
                                SamplingParameters.greedy(OUTPUT_TOKENS),
                                null),
                        this::onEvent);
    }

    private void onEvent(GenerationEvent event) {
        if (event instanceof GenerationEvent.Finished) {
            submit();
        }
    }

    /** Closes the engine. */
    @TearDown
    public void tearDown() {
        engine.close();
    }

    /** One round of the loop. */
    @Benchmark
    public int step() {
        int done = engine.step();
        if (done == 0) {
            throw new IllegalStateException("nothing to do: " + engine.failure());
        }
        return done;
    }
}
