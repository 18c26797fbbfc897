package dev.dormouse.simulation;

import dev.dormouse.connector.KvTransferParams;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/** What clients can go on from: prompts with their answers, and where the KV of both is held. */
final class Conversations {
    private static final int REMEMBERED = 8;

    /**
     * A turn that was answered.
     *
     * @param said the prompt with its answer
     * @param params what came with the answer
     */
    record Turn(List<Integer> said, KvTransferParams params) {}

    private final SplittableRandom random;
    private final List<Turn> turns = new ArrayList<>();

    Conversations(SplittableRandom random) {
        this.random = random;
    }

    void add(Request request, @Nullable KvTransferParams params) {
        if (params != null) {
            List<Integer> said = new ArrayList<>(request.prompt());
            said.addAll(request.expected());
            turns.add(new Turn(said, params));
            if (turns.size() > REMEMBERED) {
                turns.removeFirst();
            }
        }
    }

    /** The turn that was answered last, or null. */
    @Nullable Turn last() {
        return turns.isEmpty() ? null : turns.getLast();
    }

    /**
     * A turn to go on from, mostly a late one, and mostly for the last time; null if there is none.
     */
    @Nullable Turn any() {
        if (turns.isEmpty()) {
            return null;
        }
        int choice = random.nextBoolean() ? turns.size() - 1 : random.nextInt(turns.size());
        return random.nextInt(4) == 0 ? turns.get(choice) : turns.remove(choice);
    }

    /** A next turn's prompt: what was said, mostly as it was said, and a little more. */
    List<Integer> prompt(Turn turn, boolean honest) {
        List<Integer> prompt = new ArrayList<>(turn.said());
        if (!honest && random.nextInt(5) == 0) {
            int place = random.nextInt(prompt.size());
            prompt.set(place, (prompt.get(place) + 1) % ChainModel.VOCABULARY);
        }
        if (!honest && random.nextInt(8) == 0) {
            return List.copyOf(prompt.subList(0, 1 + random.nextInt(prompt.size())));
        }
        int more = 1 + random.nextInt(4);
        for (int i = 0; i < more; i++) {
            prompt.add(random.nextInt(ChainModel.VOCABULARY));
        }
        return Collections.unmodifiableList(prompt);
    }
}
