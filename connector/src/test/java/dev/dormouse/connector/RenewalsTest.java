package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Which renewals count for a peer that cannot be asked; times in seconds. */
final class RenewalsTest {
    private static final long EXTENSION = 20;
    private static final long MARGIN = 5;

    private final Renewals renewals = new Renewals();

    @Test
    void withoutARenewalTheDeadlineStays() {
        assertThat(renewals.extend("r", 30, MARGIN)).isEqualTo(30);
    }

    @Test
    void anUnbrokenChainExtendsTheDeadline() {
        for (int at = 5; at <= 100; at += 10) {
            sent(at);
        }
        assertThat(renewals.extend("r", 30, MARGIN)).isEqualTo(95 + EXTENSION);
    }

    @Test
    void anEarlyRenewalNeverShortens() {
        sent(1);
        assertThat(renewals.extend("r", 30, MARGIN)).isEqualTo(30);
    }

    @Test
    void aRenewalThatMayHaveComeAfterTheEndCountsForNothing() {
        sent(26);
        assertThat(renewals.extend("r", 30, MARGIN)).isEqualTo(30);
    }

    @Test
    void aRenewalThatMayHaveComeJustAtTheEndCountsForNothing() {
        sent(25); // 30 - 5
        assertThat(renewals.extend("r", 30, MARGIN)).isEqualTo(30);
        renewals.sent(List.of("s"), 10, EXTENSION, MARGIN);
        renewals.sent(List.of("s"), 25, EXTENSION, MARGIN); // 10 + 20 - 5
        assertThat(renewals.extend("s", 30, MARGIN)).as("the chain begins anew").isEqualTo(30);
    }

    @Test
    void whatIsInForceIsNotForgotten() {
        sent(10);
        renewals.forget(29);
        assertThat(renewals.extend("r", 20, MARGIN)).isEqualTo(30);
    }

    @Test
    void aGapBreaksTheChain() {
        sent(10);
        sent(26); // 10 + 20 - 5 has passed
        assertThat(renewals.extend("r", 30, MARGIN)).isEqualTo(30);
    }

    @Test
    void whatHasEndedIsForgotten() {
        sent(10);
        renewals.forget(30);
        assertThat(renewals.extend("r", 20, MARGIN)).isEqualTo(20);
    }

    private void sent(long at) {
        renewals.sent(List.of("r"), at, EXTENSION, MARGIN);
    }
}
