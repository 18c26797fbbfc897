package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Which rank reads which heads from which rank. */
final class RankMappingTest {
    @Test
    void equalSizesPairRankByRank() {
        RankMapping mapping = RankMapping.of(2, 4, 4, 8);
        assertThat(mapping.sources()).containsExactly(new RankId(0, 2));
        assertThat(mapping.consumers()).isEqualTo(1);
        assertThat(mapping.slices().getFirst().isWhole()).isTrue();
    }

    @Test
    void manyReadersShareASource() {
        RankMapping mapping = RankMapping.of(3, 4, 2, 8);
        assertThat(mapping.consumers()).isEqualTo(2);
        assertThat(mapping.slices())
                .containsExactly(new RankMapping.Slice(1, 2, 0, 2, 4, 2, false));
    }

    @Test
    void aReaderTakesFromManySourcesInOrder() {
        RankMapping mapping = RankMapping.of(1, 2, 4, 8);
        assertThat(mapping.consumers()).isEqualTo(1);
        assertThat(mapping.slices())
                .containsExactly(
                        new RankMapping.Slice(2, 0, 0, 2, 2, 4, false),
                        new RankMapping.Slice(3, 0, 2, 2, 2, 4, false));
    }

    @Test
    void repeatedHeadsAreReadOnceAndFoundByHead() {
        assertThat(RankMapping.of(1, 2, 8, 4).slices())
                .extracting(RankMapping.Slice::repeated)
                .containsExactly(false, true, false, true);
        assertThat(RankMapping.of(13, 16, 8, 8).slices())
                .as("16 readers of 8 heads, two for each")
                .containsExactly(new RankMapping.Slice(6, 0, 0, 1, 1, 1, false));
        assertThat(RankMapping.of(3, 4, 1, 2).slices())
                .as("the second head of a source with both")
                .containsExactly(new RankMapping.Slice(0, 1, 0, 1, 2, 1, false));
    }

    /** Against a plain model of who holds which heads, for all small sizes. */
    @Test
    void everyHeadIsReadExactlyOnceAndEverySourceHearsFromEachConsumer() {
        for (int heads = 1; heads <= 8; heads++) {
            for (int localSize = 1; localSize <= 16; localSize++) {
                for (int remoteSize = 1; remoteSize <= 16; remoteSize++) {
                    if (isLegal(localSize, remoteSize, heads)) {
                        verify(localSize, remoteSize, heads);
                    } else {
                        int local = localSize;
                        int remote = remoteSize;
                        int all = heads;
                        assertThatExceptionOfType(ConnectorException.class)
                                .isThrownBy(() -> RankMapping.of(0, local, remote, all))
                                .withMessageContaining("tensor parallel " + local)
                                .withMessageContaining("peer " + remote);
                    }
                }
            }
        }
    }

    private static void verify(int localSize, int remoteSize, int heads) {
        Map<Integer, Integer> heard = new HashMap<>();
        Map<Integer, Integer> expected = new HashMap<>();
        for (int rank = 0; rank < localSize; rank++) {
            RankMapping mapping = RankMapping.of(rank, localSize, remoteSize, heads);
            List<Integer> read = new ArrayList<>();
            for (RankMapping.Slice slice : mapping.slices()) {
                heard.merge(slice.sourceRank(), 1, Integer::sum);
                expected.put(slice.sourceRank(), mapping.consumers());
                for (int i = 0; i < slice.heads(); i++) {
                    int theirs =
                            headsOf(slice.sourceRank(), remoteSize, heads)
                                    .get(slice.firstRemoteHead() + i);
                    int ours = headsOf(rank, localSize, heads).get(slice.firstLocalHead() + i);
                    assertThat(theirs).isEqualTo(ours);
                    if (!slice.repeated()) {
                        read.add(ours);
                    }
                }
            }
            assertThat(read).containsExactlyElementsOf(headsOf(rank, localSize, heads));
        }
        assertThat(heard).hasSize(remoteSize).isEqualTo(expected);
    }

    private static boolean isLegal(int localSize, int remoteSize, int heads) {
        return (localSize % remoteSize == 0 || remoteSize % localSize == 0)
                && (heads % localSize == 0 || localSize % heads == 0)
                && (heads % remoteSize == 0 || remoteSize % heads == 0);
    }

    /** The heads of a rank: head h of H lies on ranks h*T/H and after, T/H of them. */
    private static List<Integer> headsOf(int rank, int size, int heads) {
        List<Integer> held = new ArrayList<>();
        for (int head = 0; head < heads; head++) {
            boolean holds =
                    size >= heads ? rank / (size / heads) == head : head / (heads / size) == rank;
            if (holds) {
                held.add(head);
            }
        }
        return held;
    }
}
