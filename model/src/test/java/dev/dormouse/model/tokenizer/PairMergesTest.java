package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

final class PairMergesTest {
    private record Pair(int left, int right) {}

    private record Merge(int rank, int result) {}

    /** The definition: again and again merge the leftmost pair of the lowest rank. */
    private static List<Integer> naive(List<Integer> word, Map<Pair, Merge> table) {
        List<Integer> ids = new ArrayList<>(word);
        while (true) {
            int best = -1;
            int bestRank = Integer.MAX_VALUE;
            for (int i = 0; i + 1 < ids.size(); i++) {
                Merge merge = table.get(new Pair(ids.get(i), ids.get(i + 1)));
                if (merge != null && merge.rank < bestRank) {
                    best = i;
                    bestRank = merge.rank;
                }
            }
            if (best < 0) {
                return ids;
            }
            Pair pair = new Pair(ids.get(best), ids.get(best + 1));
            ids.subList(best + 1, best + 2).clear();
            ids.set(best, Objects.requireNonNull(table.get(pair)).result);
        }
    }

    @Test
    void mergesAsTheDefinitionDoes() {
        Seeded.forAll(
                1_000,
                random -> {
                    int merges = random.nextInt(1, 40);
                    PairMerges table = new PairMerges(merges);
                    Map<Pair, Merge> expected = new HashMap<>();
                    int next = 4;
                    for (int rank = 0; rank < merges; rank++) {
                        Pair pair = new Pair(random.nextInt(next), random.nextInt(next));
                        boolean known = random.nextInt(4) == 0;
                        int result = known ? random.nextInt(next) : next++;
                        table.add(pair.left, pair.right, rank, result);
                        expected.putIfAbsent(pair, new Merge(rank, result));
                    }
                    int[] word = random.ints(random.nextInt(40), -1, 4).toArray();
                    List<Integer> given = new ArrayList<>();
                    for (int id : word) {
                        given.add(id);
                    }
                    int count = table.merge(word);
                    List<Integer> merged = new ArrayList<>();
                    for (int i = 0; i < count; i++) {
                        merged.add(word[i]);
                    }
                    assertThat(merged).as("%s", given).isEqualTo(naive(given, expected));
                });
    }
}
