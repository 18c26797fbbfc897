package dev.dormouse.simulation;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** Prompts that share prefixes and end around the ends of blocks, with their right answers. */
final class Prompts {
    private static final int MAX_OUTPUT = 6;
    private static final int BLOCK_TOKENS = 4;

    /** The longest prompt. */
    static final int MAX_LENGTH = Setting.MAX_TOKENS - MAX_OUTPUT;

    private final int kvHeads;
    private final SplittableRandom random;
    private final List<List<Integer>> stems = new ArrayList<>();
    private final Map<List<Integer>, List<Integer>> answers = new HashMap<>();

    Prompts(int kvHeads, SplittableRandom random) {
        this.kvHeads = kvHeads;
        this.random = random;
        for (int i = 0; i < 3; i++) {
            stems.add(tokens(16));
        }
    }

    /** One that mostly begins like others. */
    List<Integer> any() {
        return ofLength(
                Math.clamp(
                        BLOCK_TOKENS * random.nextInt(1, 6) + random.nextInt(-1, 2),
                        1,
                        MAX_LENGTH));
    }

    /** One that begins like no other, a few blocks long. */
    List<Integer> unheardOf() {
        return tokens(2 * BLOCK_TOKENS + random.nextInt(2 * BLOCK_TOKENS));
    }

    /** One that mostly begins like others, of a length. */
    List<Integer> ofLength(int length) {
        List<Integer> stem = stems.get(random.nextInt(stems.size()));
        int shared = Math.min(length, BLOCK_TOKENS * random.nextInt(5));
        List<Integer> prompt = new ArrayList<>(stem.subList(0, shared));
        prompt.addAll(tokens(length - shared));
        return prompt;
    }

    int outputLength() {
        return 1 + random.nextInt(MAX_OUTPUT);
    }

    List<Integer> answer(List<Integer> prompt, int count) {
        return answers.computeIfAbsent(
                        prompt, known -> ChainModel.oracle(kvHeads, known, MAX_OUTPUT))
                .subList(0, count);
    }

    private List<Integer> tokens(int count) {
        List<Integer> tokens = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            tokens.add(random.nextInt(ChainModel.VOCABULARY));
        }
        return tokens;
    }
}
