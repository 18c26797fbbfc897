package dev.dormouse.model;

import dev.dormouse.model.gguf.GgufFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.function.DoubleSupplier;

/**
 * Prints how fast a model loads, prefills and decodes: {@code ModelSpeed MODEL.gguf [threads]
 * [seconds per figure]}. Each figure is the median and the best of repeated runs.
 */
public final class ModelSpeed {
    private static final int BLOCK_TOKENS = 16;
    private static final int CONTEXT = 1024;

    private final LlamaModel model;
    private final ModelMemory memory;
    private final long nanosPerFigure;
    private final SplittableRandom random = new SplittableRandom(1);
    private final int[] blocks;

    private ModelSpeed(LlamaModel model, ModelMemory memory, long nanosPerFigure) {
        this.model = model;
        this.memory = memory;
        this.nanosPerFigure = nanosPerFigure;
        blocks = memory.blocks(random);
    }

    /** Runs all measurements. */
    public static void main(String[] arguments) {
        int threads = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 2;
        double seconds = arguments.length > 2 ? Double.parseDouble(arguments[2]) : 10;
        try (GgufFile file = GgufFile.open(Path.of(arguments[0]));
                LlamaModel model = LlamaModel.open(file, threads);
                ModelMemory memory =
                        new ModelMemory(model, 8 * CONTEXT / BLOCK_TOKENS, 16, KvType.F16)) {
            new ModelSpeed(model, memory, (long) (seconds * 1e9)).run();
        }
    }

    private void run() {
        report("load weights, GB/s", this::load);
        for (int tokens : new int[] {128, 512}) {
            report("prefill " + tokens + ", tokens/s", () -> prefill(tokens));
        }
        for (int depth : new int[] {64, 960}) {
            report("decode at " + depth + ", tokens/s", () -> decode(1, depth));
        }
        for (int sequences : new int[] {2, 4, 8}) {
            report(
                    "decode " + sequences + " sequences at 64, tokens/s",
                    () -> decode(sequences, 64));
        }
    }

    /** Runs until the time is up, at least three times; the first are slow. */
    private void report(String what, DoubleSupplier measurement) {
        long start = System.nanoTime();
        double[] figures = new double[3];
        int runs = 0;
        while (runs < 3 || System.nanoTime() - start < nanosPerFigure) {
            if (runs == figures.length) {
                figures = Arrays.copyOf(figures, 2 * runs);
            }
            figures[runs++] = measurement.getAsDouble();
        }
        Arrays.sort(figures, 0, runs);
        System.out.printf(
                Locale.ROOT,
                "%-36s median %8.1f  best %8.1f  of %d%n",
                what,
                figures[runs / 2],
                figures[runs - 1],
                runs);
    }

    private double load() {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment target = arena.allocate(model.weightBytes(), 64);
            long start = System.nanoTime();
            model.loadWeights(target);
            return target.byteSize() / (double) (System.nanoTime() - start);
        }
    }

    private double prefill(int tokens) {
        int[] prompt = random.ints(tokens, 0, model.config().vocabularySize()).toArray();
        return tokens / seconds(new SequenceChunk(prompt, 0, blocks, 1));
    }

    private double decode(int sequences, int depth) {
        SequenceChunk[] batch = new SequenceChunk[sequences];
        int perSequence = CONTEXT / BLOCK_TOKENS;
        for (int i = 0; i < sequences; i++) {
            int[] own = Arrays.copyOfRange(blocks, i * perSequence, (i + 1) * perSequence);
            int[] token = {random.nextInt(model.config().vocabularySize())};
            batch[i] = new SequenceChunk(token, depth, own, 1);
        }
        return sequences / seconds(batch);
    }

    private double seconds(SequenceChunk... batch) {
        long start = System.nanoTime();
        memory.step(batch);
        return (System.nanoTime() - start) / 1e9;
    }
}
