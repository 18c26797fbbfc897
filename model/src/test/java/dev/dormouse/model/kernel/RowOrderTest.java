package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class RowOrderTest {
    /** llama.cpp's converter reshapes a head to two halves, and swaps the axes. */
    @Test
    void splitHalvesUndoesTheConvertersPermutation() {
        int[] authors = IntStream.range(0, 16).map(i -> 100 + i).toArray();
        int[] file = new int[16];
        for (int head = 0; head < 2; head++) {
            for (int half = 0; half < 2; half++) {
                for (int i = 0; i < 4; i++) {
                    file[head * 8 + i * 2 + half] = authors[head * 8 + half * 4 + i];
                }
            }
        }
        RowOrder order = RowOrder.splitHalves(8);
        int[] read = IntStream.range(0, 16).map(output -> file[order.row(output)]).toArray();
        assertThat(read).isEqualTo(authors);
        assertThat(Arrays.stream(authors).map(RowOrder.AS_STORED::row).toArray())
                .isEqualTo(authors);
    }
}
