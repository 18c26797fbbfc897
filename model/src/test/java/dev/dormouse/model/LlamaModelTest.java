package dev.dormouse.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.gguf.TensorType;
import dev.dormouse.model.kernel.Kernels;
import dev.dormouse.model.kernel.ScalarKernels;
import dev.dormouse.testkit.ProcessMapping;
import dev.dormouse.testkit.Seeded;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import org.assertj.core.data.Offset;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

final class LlamaModelTest {
    private static final TensorType[] MIXED = {
        TensorType.Q4_1, TensorType.Q8_0, TensorType.F16, TensorType.Q4_1, TensorType.Q4_0
    };

    @TempDir private Path directory;

    private interface Case {
        void run(LlamaModel model);
    }

    private void withModel(TinyModel tiny, int threads, Kernels kernels, Case test) {
        try (GgufFile file = GgufFile.open(tiny.write(directory));
                LlamaModel model = LlamaModel.open(file, threads, 1, kernels)) {
            test.run(model);
        }
    }

    private static int[] randomTokens(int count, SplittableRandom random) {
        return random.ints(count, 0, TinyModel.VOCABULARY).toArray();
    }

    private static SequenceChunk chunk(int[] tokens, int from, int to, int[] blocks) {
        return new SequenceChunk(Arrays.copyOfRange(tokens, from, to), from, blocks, to - from);
    }

    private static void assertSame(String what, List<float[]> actual, List<float[]> expected) {
        assertThat(actual).as(what).hasSameSizeAs(expected);
        for (int row = 0; row < actual.size(); row++) {
            assertThat(actual.get(row)).as("%s, row %d", what, row).isEqualTo(expected.get(row));
        }
    }

    @Test
    void theConfigurationIsTheFiles() {
        TinyModel tiny = TinyModel.random(true, new SplittableRandom(1), MIXED);
        withModel(
                tiny,
                1,
                Kernels.best(),
                model -> {
                    assertThat(model.config())
                            .isEqualTo(
                                    new ModelConfig(
                                            "tiny", "llama", 139, 64, 2, 4, 2, 32, 128, 160, 24,
                                            5000, 1e-4f, List.of()));
                    assertThat(model.weightBytes(0)).isPositive();
                    assertThat(model.weightBytes(0) % 64).isZero();
                });
    }

    @Test
    void noPageOfTheFileCountsAsTheProcesssMemoryOnceTheWeightsAreLoaded() throws IOException {
        Path path = TinyModel.random(true, new SplittableRandom(1), MIXED).write(directory);
        long fileKib = Files.size(path) >> 10;
        try (GgufFile file = GgufFile.open(path);
                LlamaModel model = LlamaModel.open(file, 1)) {
            file.tensors().forEach(tensor -> touch(file.data(tensor)));
            assertThat(residentKib(path)).isGreaterThanOrEqualTo(fileKib);

            ModelMemory memory = new ModelMemory(model, 16, 1, KvType.F16);
            memory.close();
            // What is left holds the file's header, and the beginning of a tensor at most.
            assertThat(residentKib(path)).isLessThan(fileKib / 4);
        }
    }

    private static void touch(MemorySegment bytes) {
        for (long i = 0; i < bytes.byteSize(); i += 1024) {
            var _ = bytes.get(ValueLayout.JAVA_BYTE, i);
        }
    }

    /** Of a mapped file's pages, those that this process has. */
    private static long residentKib(Path file) {
        return ProcessMapping.ofThisProcess().stream()
                .filter(mapping -> mapping.name().endsWith(file.toString()))
                .mapToLong(mapping -> mapping.kib("Rss"))
                .sum();
    }

    /** The rows of the tiny model are shorter than a block of the K types. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"Q4_K", "Q5_K", "Q6_K"})
    void logitsAreThoseOfANaiveForwardPass(TensorType type) {
        Seeded.forAll(
                2,
                random -> {
                    TinyModel tiny = TinyModel.random(random.nextBoolean(), random, type);
                    agreesWithNaive(tiny, KvType.F16, 5e-3, random);
                });
    }

    @ParameterizedTest
    @EnumSource
    void bothCacheTypesAndMixedMatricesAgreeWithANaiveForwardPass(KvType type) {
        Seeded.forAll(
                2,
                random -> {
                    TinyModel tiny = TinyModel.random(random.nextBoolean(), random, MIXED);
                    agreesWithNaive(tiny, type, type == KvType.F16 ? 5e-3 : 5e-2, random);
                });
    }

    private void agreesWithNaive(
            TinyModel tiny, KvType type, double tolerance, SplittableRandom random) {
        int[] tokens = randomTokens(40, random);
        double[][] expected = new NaiveLlama(tiny, type).logits(tokens);
        withModel(
                tiny,
                2,
                Kernels.best(),
                model -> {
                    try (ModelMemory memory = new ModelMemory(model, 5, 8, type)) {
                        int[] blocks = memory.blocks(random);
                        List<float[]> rows = memory.forward(chunk(tokens, 0, 40, blocks));
                        for (int row = 0; row < 40; row++) {
                            for (int i = 0; i < TinyModel.VOCABULARY; i++) {
                                assertThat((double) rows.get(row)[i])
                                        .as("position %d, token %d", row, i)
                                        .isCloseTo(expected[row][i], Offset.offset(tolerance));
                            }
                        }
                    }
                });
    }

    /**
     * The layout is a contract with other engines, so it is spelled out here once more. Keys are in
     * the order of the model's authors, which rotates elements d and d + 16 of a head of 32; a GGUF
     * file, and the naive pass, have those side by side.
     */
    @ParameterizedTest
    @EnumSource
    void theCacheHoldsHeadByHeadAndTokenByTokenKThenV(KvType type) {
        SplittableRandom random = new SplittableRandom(14);
        TinyModel tiny = TinyModel.random(true, random, TensorType.F32);
        int[] tokens = randomTokens(11, random);
        NaiveLlama naive = new NaiveLlama(tiny, type);
        naive.logits(tokens);
        withModel(
                tiny,
                2,
                Kernels.best(),
                model -> {
                    try (ModelMemory memory = new ModelMemory(model, 5, 4, type)) {
                        int[] blocks = {3, 0, 4};
                        memory.forward(chunk(tokens, 0, 11, blocks));
                        MemorySegment layer = memory.kv().layers().getFirst();
                        short[] elements = layer.toArray(ValueLayout.JAVA_SHORT);
                        for (int i = 0; i < elements.length; i++) {
                            int block = i / (2 * 4 * 2 * 32);
                            int head = i / (4 * 2 * 32) % 2;
                            int slot = i / (2 * 32) % 4;
                            boolean key = i / 32 % 2 == 0;
                            int inFile = key ? i % 16 * 2 + i / 16 % 2 : i % 32;
                            int dimension = head * 32 + inFile;
                            int position = 4 * Arrays.asList(3, 0, 4).indexOf(block) + slot;
                            if (position < 0 || position > 10) {
                                assertThat(elements[i])
                                        .as("unused element %d", i)
                                        .isEqualTo((short) -1);
                            } else {
                                var expected = key ? naive.firstKeys : naive.firstValues;
                                assertThat((double) widen(type, elements[i]))
                                        .as("element %d", i)
                                        .isCloseTo(
                                                expected.get(position)[dimension],
                                                Percentage.withPercentage(1));
                            }
                        }
                    }
                });
    }

    private static float widen(KvType type, short bits) {
        return type == KvType.F16 ? Float.float16ToFloat(bits) : Float.intBitsToFloat(bits << 16);
    }

    @Test
    void howASequenceIsCutDoesNotMatter() {
        Seeded.forAll(
                4,
                random -> {
                    TinyModel tiny = TinyModel.random(true, random, MIXED);
                    int[] tokens = randomTokens(120, random);
                    List<float[]> whole = whole(tiny, tokens, random);
                    withModel(
                            tiny,
                            2,
                            Kernels.best(),
                            model -> {
                                List<float[]> cut = new ArrayList<>();
                                try (ModelMemory memory =
                                        new ModelMemory(model, 31, 4, KvType.F16)) {
                                    int[] blocks = memory.blocks(random);
                                    int from = 0;
                                    while (from < 120) {
                                        int most = random.nextBoolean() ? 1 : 50;
                                        int to = Math.min(120, from + 1 + random.nextInt(most));
                                        cut.addAll(memory.forward(chunk(tokens, from, to, blocks)));
                                        from = to;
                                    }
                                }
                                assertSame("chunks", cut, whole);
                            });
                });
    }

    private List<float[]> whole(TinyModel tiny, int[] tokens, SplittableRandom random) {
        List<float[]> rows = new ArrayList<>();
        withModel(
                tiny,
                1,
                Kernels.best(),
                model -> {
                    try (ModelMemory memory = new ModelMemory(model, 10, 16, KvType.F16)) {
                        rows.addAll(
                                memory.forward(
                                        chunk(tokens, 0, tokens.length, memory.blocks(random))));
                    }
                });
        return rows;
    }

    @Test
    void theOtherSequencesOfABatchDoNotMatter() {
        Seeded.forAll(
                4,
                random -> {
                    TinyModel tiny = TinyModel.random(false, random, MIXED);
                    int[] first = randomTokens(70, random);
                    int[] second = randomTokens(33, random);
                    int[] third = randomTokens(9, random);
                    List<float[]> expected = new ArrayList<>();
                    expected.addAll(whole(tiny, first, random).subList(50, 70));
                    expected.addAll(whole(tiny, second, random).subList(32, 33));
                    expected.addAll(whole(tiny, third, random));
                    withModel(
                            tiny,
                            3,
                            Kernels.best(),
                            model -> {
                                try (ModelMemory memory =
                                        new ModelMemory(model, 40, 4, KvType.F16)) {
                                    int[] all = memory.blocks(random);
                                    int[] a = Arrays.copyOfRange(all, 0, 18);
                                    int[] b = Arrays.copyOfRange(all, 18, 27);
                                    int[] c = Arrays.copyOfRange(all, 27, 40);
                                    memory.forward(chunk(second, 0, 32, b), chunk(first, 0, 50, a));
                                    assertSame(
                                            "batch",
                                            memory.forward(
                                                    chunk(first, 50, 70, a),
                                                    chunk(second, 32, 33, b),
                                                    chunk(third, 0, 9, c)),
                                            expected);
                                }
                            });
                });
    }

    @Test
    void threadsAndKernelsDoNotMatter() {
        SplittableRandom random = new SplittableRandom(11);
        TinyModel tiny = TinyModel.random(true, random, MIXED);
        int[] tokens = randomTokens(80, random);
        List<float[]> expected = whole(tiny, tokens, random);
        for (int threads = 1; threads <= 4; threads++) {
            for (Kernels kernels : List.of(Kernels.best(), new ScalarKernels())) {
                withModel(
                        tiny,
                        threads,
                        kernels,
                        model -> {
                            try (ModelMemory memory = new ModelMemory(model, 12, 7, KvType.F16)) {
                                int[] blocks = memory.blocks(random);
                                List<float[]> rows =
                                        new ArrayList<>(
                                                memory.forward(chunk(tokens, 0, 79, blocks)));
                                rows.addAll(memory.forward(chunk(tokens, 79, 80, blocks)));
                                assertSame(kernels.name(), rows, expected);
                            }
                        });
            }
        }
    }

    /** Among them formats that differ from layer to layer, and a head of its own. */
    @Test
    void warmingUpBesideAStepChangesNothing() {
        SplittableRandom random = new SplittableRandom(13);
        TinyModel tiny = TinyModel.random(false, random, MIXED);
        int[] tokens = randomTokens(80, random);
        List<float[]> expected = whole(tiny, tokens, random);
        withModel(
                tiny,
                2,
                Kernels.best(),
                model -> {
                    CompletableFuture<Void> warmUp = CompletableFuture.runAsync(model::warmUp);
                    do {
                        try (ModelMemory memory = new ModelMemory(model, 5, 16, KvType.F16)) {
                            int[] blocks = memory.blocks(random);
                            assertSame(
                                    "beside a warm-up",
                                    memory.forward(chunk(tokens, 0, 80, blocks)),
                                    expected);
                        }
                    } while (!warmUp.isDone());
                    warmUp.join();
                });
    }

    @Test
    void onlyTheRowsThatWereAskedForHaveLogits() {
        SplittableRandom random = new SplittableRandom(12);
        TinyModel tiny = TinyModel.random(true, random, MIXED);
        int[] tokens = randomTokens(20, random);
        List<float[]> expected = whole(tiny, tokens, random);
        withModel(
                tiny,
                2,
                Kernels.best(),
                model -> {
                    try (ModelMemory memory = new ModelMemory(model, 5, 8, KvType.F16)) {
                        int[] blocks = memory.blocks(random);
                        int[] start = Arrays.copyOf(tokens, 10);
                        int[] rest = Arrays.copyOfRange(tokens, 10, 20);
                        assertThat(memory.forward(new SequenceChunk(start, 0, blocks, 0)))
                                .isEmpty();
                        assertSame(
                                "last three",
                                memory.forward(new SequenceChunk(rest, 10, blocks, 3)),
                                expected.subList(17, 20));
                    }
                });
    }

    @Test
    void sequencesMayShareTheBlocksOfACommonPrefix() {
        SplittableRandom random = new SplittableRandom(13);
        TinyModel tiny = TinyModel.random(true, random, MIXED);
        int[] one = randomTokens(24, random);
        int[] other = one.clone();
        other[20] = (other[20] + 1) % TinyModel.VOCABULARY;
        List<float[]> expected = new ArrayList<>(whole(tiny, one, random).subList(16, 24));
        expected.addAll(whole(tiny, other, random).subList(16, 24));
        withModel(
                tiny,
                2,
                Kernels.best(),
                model -> {
                    try (ModelMemory memory = new ModelMemory(model, 4, 8, KvType.F16)) {
                        memory.forward(chunk(one, 0, 16, new int[] {3, 0}));
                        assertSame(
                                "shared prefix",
                                memory.forward(
                                        chunk(one, 16, 24, new int[] {3, 0, 1}),
                                        chunk(other, 16, 24, new int[] {3, 0, 2})),
                                expected);
                    }
                });
    }
}
