package dev.dormouse.cli.bench;

import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.PagedKv;
import dev.dormouse.model.RankView;
import dev.dormouse.model.SequenceChunk;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse bench engine}: how fast the model computes, alone. */
@Command(
        name = "engine",
        mixinStandardHelpOptions = true,
        description =
                "Tokens per second of prefill and decode: the median over some repetitions, after a warm-up.")
final class EngineBench implements Callable<Integer> {
    private static final int BLOCK_TOKENS = 16;
    private static final int CHUNK_TOKENS = 512;
    private static final int WARM_UPS = 2;
    private static final int[] PREFILLS = {128, 512};
    private static final int DECODE_TOKENS = 64;
    private static final int[] DECODE_SEQUENCES = {1, 8};

    @Spec private CommandSpec spec;

    @Option(
            names = "--model",
            paramLabel = "PATH",
            defaultValue = "${env:DORMOUSE_MODEL}",
            description = "GGUF file, or folder of Hugging Face's.")
    private @Nullable Path model;

    @Option(names = "--threads", description = "Compute threads (default: one per processor).")
    private @Nullable Integer threads;

    @Option(
            names = {"--tensor-parallel-size", "-tp"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Ranks that share the model (default: ${DEFAULT-VALUE}).")
    private int ranks;

    @Option(
            names = "--repetitions",
            defaultValue = "5",
            description = "Counted runs (default: ${DEFAULT-VALUE}).")
    private int repetitions;

    @Override
    public Integer call() {
        if (model == null || repetitions < 1) {
            throw new ParameterException(
                    spec.commandLine(), "needs --model PATH, and --repetitions of at least 1");
        }
        int count = threads == null ? Runtime.getRuntime().availableProcessors() : threads;
        try (ModelFiles files = ModelFiles.open(model);
                LlamaModel llama = files.openModel(count, ranks);
                Arena arena = Arena.ofShared()) {
            List<MemorySegment> weights = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                weights.add(arena.allocate(llama.weightBytes(rank), 64));
                llama.loadWeights(rank, weights.getLast());
            }
            System.out.printf(
                    "%s, %d threads, %d %s%n",
                    llama.config().name(), count, ranks, ranks == 1 ? "rank" : "ranks");
            for (int tokens : PREFILLS) {
                report(
                        "prefill " + tokens + " tokens",
                        tokens,
                        median(() -> prefill(llama, weights, arena, tokens)));
            }
            for (int sequences : DECODE_SEQUENCES) {
                String what = "decode " + sequences + (sequences == 1 ? " sequence" : " sequences");
                report(
                        what,
                        DECODE_TOKENS * sequences,
                        median(() -> decode(llama, weights, arena, sequences)));
            }
        }
        return 0;
    }

    /** Something whose seconds are measured. */
    private interface Measured {
        double seconds();
    }

    private double median(Measured measured) {
        for (int i = 0; i < WARM_UPS; i++) {
            var _ = measured.seconds();
        }
        return IntStream.range(0, repetitions)
                .mapToDouble(i -> measured.seconds())
                .sorted()
                .toArray()[repetitions / 2];
    }

    private static void report(String what, int tokens, double seconds) {
        System.out.printf(Locale.ROOT, "%-20s %8.1f tokens/s%n", what, tokens / seconds);
    }

    private static double prefill(
            LlamaModel llama, List<MemorySegment> weights, Arena arena, int tokens) {
        List<RankView> views = views(llama, weights, arena, tokens);
        int[] prompt = prompt(llama, tokens);
        int[] table = table(0, blocks(tokens));
        long start = System.nanoTime();
        for (int from = 0; from < tokens; from += CHUNK_TOKENS) {
            int to = Math.min(tokens, from + CHUNK_TOKENS);
            int[] chunk = java.util.Arrays.copyOfRange(prompt, from, to);
            var _ =
                    llama.forward(
                            List.of(new SequenceChunk(chunk, from, table, to == tokens ? 1 : 0)),
                            views);
        }
        return (System.nanoTime() - start) / 1e9;
    }

    private static double decode(
            LlamaModel llama, List<MemorySegment> weights, Arena arena, int sequences) {
        int blocks = blocks(DECODE_TOKENS + 1);
        List<RankView> views = views(llama, weights, arena, sequences * blocks * BLOCK_TOKENS);
        int[] next = prompt(llama, sequences);
        long start = System.nanoTime();
        for (int position = 0; position < DECODE_TOKENS; position++) {
            List<SequenceChunk> batch = new ArrayList<>();
            for (int i = 0; i < sequences; i++) {
                batch.add(
                        new SequenceChunk(
                                new int[] {next[i]}, position, table(i * blocks, blocks), 1));
            }
            Logits logits = llama.forward(batch, views);
            for (int i = 0; i < sequences; i++) {
                next[i] = argmax(logits, i);
            }
        }
        return (System.nanoTime() - start) / 1e9;
    }

    private static int argmax(Logits logits, int row) {
        int from = logits.offset(row);
        int best = from;
        for (int i = from; i < from + logits.vocabularySize(); i++) {
            best = logits.values()[i] > logits.values()[best] ? i : best;
        }
        return best - from;
    }

    /** The ranks' weights, each with a cache for as many tokens. */
    private static List<RankView> views(
            LlamaModel llama, List<MemorySegment> weights, Arena arena, int tokens) {
        return weights.stream()
                .map(ofRank -> new RankView(ofRank, cache(llama, arena, tokens)))
                .toList();
    }

    private static PagedKv cache(LlamaModel llama, Arena arena, int tokens) {
        KvCacheShape shape = llama.kvCacheShape(BLOCK_TOKENS, KvType.F16);
        int blocks = blocks(tokens);
        List<MemorySegment> layers =
                IntStream.range(0, shape.layers())
                        .mapToObj(i -> arena.allocate(blocks * shape.blockBytes(), 64))
                        .toList();
        return new PagedKv(shape, blocks, layers);
    }

    private static int[] prompt(LlamaModel llama, int tokens) {
        return new SplittableRandom(1).ints(tokens, 0, llama.config().vocabularySize()).toArray();
    }

    private static int[] table(int first, int count) {
        return IntStream.range(first, first + count).toArray();
    }

    private static int blocks(int tokens) {
        return Math.ceilDiv(tokens, BLOCK_TOKENS);
    }
}
