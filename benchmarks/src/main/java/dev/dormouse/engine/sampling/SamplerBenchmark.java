package dev.dormouse.engine.sampling;

import dev.dormouse.benchmarks.Timed;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.model.Logits;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;

/** The choice of one token. */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class SamplerBenchmark extends Timed {
    private static final double SPREAD = 3;

    /** Llama 3 has 128,256 tokens. */
    @Param("128256")
    public int vocabulary;

    private Logits logits;
    private final Candidates candidates = new Candidates();
    private final Sampler greedy = sampler(0, 0, 1);
    private final Sampler whole = sampler(1, 0, 1);
    private final Sampler topK = sampler(1, 50, 1);
    private final Sampler topP = sampler(1, 0, 0.9);

    /** No sampler here changes its row. */
    @Setup
    public void setUp() {
        Random random = new Random(1);
        float[] values = new float[vocabulary];
        for (int i = 0; i < vocabulary; i++) {
            values[i] = (float) (SPREAD * random.nextGaussian());
        }
        logits = new Logits(values, 1, vocabulary);
    }

    private static Sampler sampler(double temperature, int topK, double topP) {
        SamplingParameters parameters =
                new SamplingParameters(
                        temperature,
                        topK,
                        topP,
                        0,
                        null,
                        1,
                        0,
                        0,
                        Integer.MAX_VALUE,
                        0,
                        List.of(),
                        Set.of(),
                        false,
                        null);
        return new Sampler(parameters, List.of(1), Set.of(0), 1);
    }

    /** The likeliest. */
    @Benchmark
    public SampledToken greedy() {
        return greedy.next(logits, 0, candidates);
    }

    /** Any. */
    @Benchmark
    public SampledToken temperature() {
        return whole.next(logits, 0, candidates);
    }

    /** One of the 50 likeliest. */
    @Benchmark
    public SampledToken topK() {
        return topK.next(logits, 0, candidates);
    }

    /** One of those that together have nine tenths of the probability. */
    @Benchmark
    public SampledToken topP() {
        return topP.next(logits, 0, candidates);
    }
}
