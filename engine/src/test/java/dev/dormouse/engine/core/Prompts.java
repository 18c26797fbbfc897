package dev.dormouse.engine.core;

import java.util.List;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** Prompts for {@link HashModel}. */
final class Prompts {
    private Prompts() {}

    /** The prompt of this number and length; two of different numbers differ from the start. */
    static List<Integer> prompt(int number, int length) {
        return IntStream.range(0, length)
                .mapToObj(i -> (number * 13 + i * 7 + 1) % HashModel.VOCABULARY)
                .toList();
    }

    static List<Integer> random(RandomGenerator random, int length) {
        return random.ints(length, 0, HashModel.VOCABULARY).boxed().toList();
    }
}
