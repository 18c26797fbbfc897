package dev.dormouse.connector;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What only a push connector orders in a step.
 *
 * @param epoch of this engine's registration when the step was made
 * @param handOvers requests that are held from now on, each with its blocks from the prompt's first
 *     token on: whoever registers for one is written to
 * @param cancelled requests that do not wait for another engine's write any more
 * @param takenBack registrations of other engines that do not wait for this one's write any more;
 *     obeyed also while the KV cache is released
 */
public record PushStep(
        long epoch,
        Map<String, List<Integer>> handOvers,
        Set<String> cancelled,
        List<PushCancel> takenBack) {
    /** Nothing is ordered. */
    public static final PushStep NONE = new PushStep(0, Map.of(), Set.of(), List.of());

    /** Copies the collections. */
    public PushStep {
        Map<String, List<Integer>> copy = new HashMap<>();
        handOvers.forEach((id, blocks) -> copy.put(id, List.copyOf(blocks)));
        handOvers = Map.copyOf(copy);
        cancelled = Set.copyOf(cancelled);
        takenBack = List.copyOf(takenBack);
    }
}
