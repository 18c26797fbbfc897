package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Text of unknown origin in messages. */
final class ExcerptTest {
    @Test
    void aShortTextIsWholeAndALongOneIsCut() {
        assertThat(Excerpt.of("x".repeat(120))).isEqualTo("'" + "x".repeat(120) + "'");
        assertThat(Excerpt.of("x".repeat(121))).isEqualTo("'" + "x".repeat(120) + "…'");
    }

    @Test
    void noTextBreaksALine() {
        assertThat(Excerpt.of("a\nb\tc")).isEqualTo("'a?b?c'");
    }
}
