package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class OpenClaimsTest {
    private static HoldQuestion claim(int i) {
        return new HoldQuestion("p" + i, "reader");
    }

    @Test
    void whatJoinsIsClaimedBehindTheFirstOnceAndThenNothingJoins() {
        OpenClaims claims = new OpenClaims(List.of(claim(1), claim(2), claim(1)));
        assertThat(claims.join(claim(3))).isTrue();
        assertThat(claims.next()).containsExactly(claim(1), claim(2), claim(3));
        assertThat(claims.join(claim(4))).isTrue();
        assertThat(claims.join(claim(4))).isTrue();
        assertThat(claims.next()).containsExactly(claim(4));
        assertThat(claims.join(claim(5))).as("the first must not wait for ever").isFalse();
        assertThat(claims.next()).isEmpty();
    }

    @Test
    void nothingJoinsAConversationThatFoundNothingToClaim() {
        OpenClaims claims = new OpenClaims(List.of());
        assertThat(claims.next()).isEmpty();
        assertThat(claims.join(claim(1))).isFalse();
    }

    @Test
    void noMoreJoinThanOneConversationBears() {
        List<HoldQuestion> first = new ArrayList<>();
        for (int i = 1; i < OpenClaims.MAX; i++) {
            first.add(claim(i));
        }
        OpenClaims claims = new OpenClaims(first);
        assertThat(claims.join(claim(0))).isTrue();
        assertThat(claims.join(claim(-1))).isFalse();
        assertThat(claims.next()).hasSize(OpenClaims.MAX);
    }
}
