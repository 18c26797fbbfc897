package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class MappedPiecesTest {
    private final MappedPieces pieces = new MappedPieces(100);

    @Test
    void piecesMayTouchAndNotOverlap() {
        pieces.add(20, 10);

        for (long[] piece : new long[][] {{0, 20}, {30, 70}, {10, 10}, {99, 1}}) {
            assertThatCode(() -> pieces.requireFree(piece[0], piece[1])).doesNotThrowAnyException();
        }
        for (long[] piece :
                new long[][] {{0, 21}, {29, 1}, {20, 10}, {25, 1}, {0, 100}, {10, 50}}) {
            assertThatThrownBy(() -> pieces.requireFree(piece[0], piece[1]))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("meet the piece at 20 of 10 bytes");
        }
    }

    @Test
    void aPieceStaysInTheRange() {
        for (long[] piece : new long[][] {{-1, 5}, {96, 5}, {0, 101}, {Long.MAX_VALUE, 5}}) {
            assertThatThrownBy(() -> pieces.requireFree(piece[0], piece[1]))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("leave the range of 100 bytes");
        }
    }

    @Test
    void aPartIsMappedWhenPiecesCoverItAll() {
        pieces.add(20, 10);
        pieces.add(30, 20);
        pieces.add(60, 10);

        for (long[] part : new long[][] {{20, 30}, {25, 20}, {49, 1}, {60, 10}}) {
            assertThatCode(() -> pieces.requireMapped(part[0], part[1])).doesNotThrowAnyException();
        }
        for (long[] part : new long[][] {{19, 2}, {49, 2}, {20, 50}, {0, 100}, {70, 1}}) {
            assertThatThrownBy(() -> pieces.requireMapped(part[0], part[1]))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("nothing is mapped at");
        }
        assertThatThrownBy(() -> pieces.requireMapped(20, 0))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void whatIsMappedIsCounted() {
        pieces.add(20, 10);
        pieces.add(50, 50);
        assertThat(pieces.mappedBytes()).isEqualTo(60);
        assertThat(pieces.stretches())
                .containsExactly(
                        new MappedPieces.Stretch(20, 10), new MappedPieces.Stretch(50, 50));

        pieces.remove(20);

        assertThat(pieces.mappedBytes()).isEqualTo(50);
        assertThatThrownBy(() -> pieces.remove(20))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("pieces start at [50]");
    }
}
