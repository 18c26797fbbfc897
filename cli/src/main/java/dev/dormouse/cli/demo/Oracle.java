package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.Endpoint;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * What an engine alone answers: the measure for all others.
 *
 * @param prompts the prompts
 * @param tokens tokens per answer
 * @param answers the answers' token ids
 */
record Oracle(List<String> prompts, int tokens, List<List<Integer>> answers) {
    static Oracle ask(Endpoint engine, List<String> prompts, int tokens) {
        List<List<Integer>> answers = new ArrayList<>();
        for (String prompt : prompts) {
            answers.add(engine.complete(prompt, tokens).tokens());
        }
        return new Oracle(prompts, tokens, answers);
    }

    /** The same, the second prompt first and the first one last. */
    Oracle rotated() {
        return new Oracle(rotated(prompts), tokens, rotated(answers));
    }

    private static <T> List<T> rotated(List<T> all) {
        List<T> rotated = new ArrayList<>(all);
        Collections.rotate(rotated, -1);
        return rotated;
    }

    /** Asks for one prompt, and compares. */
    boolean answersEqually(Endpoint engine, int index) {
        return engine.complete(prompts.get(index), tokens).tokens().equals(answers.get(index));
    }

    /**
     * One pass over all prompts.
     *
     * @param equal answers that equal the oracle's
     * @param millis time of each request
     */
    record Check(int equal, List<Double> millis) {
        /** The first request is left out: it may meet cold kernels, and an unknown peer. */
        double medianMillis() {
            List<Double> sorted = millis.stream().skip(1).sorted().toList();
            return sorted.get((sorted.size() - 1) / 2);
        }
    }

    /**
     * Asks one prompt after the other, so that nothing but the engines' own state can make a
     * difference.
     */
    Check check(Endpoint router) {
        int equal = 0;
        List<Double> millis = new ArrayList<>();
        for (int i = 0; i < prompts.size(); i++) {
            Endpoint.Completion completion = router.complete(prompts.get(i), tokens);
            equal += completion.tokens().equals(answers.get(i)) ? 1 : 0;
            millis.add(completion.millis());
        }
        return new Check(equal, millis);
    }
}
