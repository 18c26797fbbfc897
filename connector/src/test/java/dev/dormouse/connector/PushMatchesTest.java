package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which registration gets which request. */
final class PushMatchesTest {
    private static final long TIMEOUT_NANOS = 1_000;
    private static final List<Integer> BLOCKS = List.of(3, 1);
    private static final String AGENT = "agent of D";

    private final PushMatches matches = new PushMatches(TIMEOUT_NANOS);

    @Test
    void aRequestAndItsRegistrationMeetWhicheverComesFirst() {
        assertThat(matches.hold("p1", BLOCKS)).isNull();
        PushRegistration first = registration("d1", "p1");
        assertMatch(matches.register(first, AGENT, 5), first, "p1", 5);
        PushRegistration second = registration("d2", "p2");
        assertThat(matches.register(second, AGENT, 6)).isNull();
        assertMatch(matches.hold("p2", BLOCKS), second, "p2", 6);
        assertThat(matches.activeRequests()).containsExactlyInAnyOrder("p1", "p2");
    }

    @Test
    void aRequestIsFreeUntilARegistrationHasIt() {
        assertThat(matches.isFree("p1")).isFalse();
        matches.hold("p1", BLOCKS);
        assertThat(matches.isFree("p1")).isTrue();
        assertThat(matches.isServing("p1")).isFalse();
        PushRegistration registration = registration("d1", "p1");
        matches.register(registration, AGENT, 0);
        assertThat(matches.isFree("p1")).isFalse();
        assertThat(matches.isServing("p1")).isTrue();
        assertThat(matches.isActive(registration.decoder())).isTrue();
        matches.close(registration.decoder(), 1);
        assertThat(matches.isServing("p1")).isFalse();
        assertThat(matches.isActive(registration.decoder())).isFalse();
    }

    @Test
    void withoutANameTheSameIdFitsBeforeAnyOtherSuffix() {
        matches.hold("cmpl-1-00000000", BLOCKS);
        matches.hold("cmpl-1-11111111", BLOCKS);
        PushRegistration same = registration("cmpl-1-11111111", "");
        assertMatch(matches.register(same, AGENT, 0), same, "cmpl-1-11111111", 0);
    }

    @Test
    void withoutANameAnIdThatFitsTwoRequestsFitsNone() {
        matches.hold("cmpl-1-00000000", BLOCKS);
        matches.hold("cmpl-1-11111111", BLOCKS);
        PushRegistration unclear = registration("cmpl-1-22222222", "");
        assertThat(matches.register(unclear, AGENT, 0)).isNull();
        assertThat(matches.isKnown(unclear.decoder())).as("it waits").isTrue();
    }

    @Test
    void whatIsOverBeginsNothingWhenAnotherRanksCopyComesLate() {
        matches.hold("p1", BLOCKS);
        PushRegistration registration = registration("d1", "p1");
        matches.close(registration.decoder(), 0);
        sweep(2 * TIMEOUT_NANOS - 1);
        assertThat(matches.register(registration, AGENT, 2 * TIMEOUT_NANOS - 1)).isNull();
        assertThat(matches.isFree("p1")).isTrue();
        sweep(2 * TIMEOUT_NANOS);
        assertThat(matches.isKnown(registration.decoder())).as("nobody sends it now").isFalse();
    }

    @Test
    void aRegistrationWaitsInVainOnceItsTimeIsOver() {
        PushRegistration named = registration("d1", "p1");
        PushRegistration unnamed = registration("cmpl-1", "");
        matches.register(named, AGENT, 100);
        matches.register(unnamed, AGENT, 101);
        assertThat(sweep(99 + TIMEOUT_NANOS)).isEmpty();
        assertThat(sweep(100 + TIMEOUT_NANOS)).containsExactly(named);
        assertThat(sweep(101 + TIMEOUT_NANOS)).containsExactly(unnamed);
        assertThat(sweep(102 + TIMEOUT_NANOS)).as("once").isEmpty();
        assertThat(matches.hold("p1", BLOCKS)).as("too late").isNull();
        assertThat(matches.isKnown(named.decoder())).as("it is over").isTrue();
    }

    @Test
    void aRegistrationWaitsInVainOnceItsRequestCannotCome() {
        PushRegistration named = registration("d1", "p1");
        PushRegistration unnamed = registration("cmpl-1", "");
        matches.register(named, AGENT, 0);
        matches.register(unnamed, AGENT, 0);
        assertThat(matches.sweep(_ -> true, Set.of("p1")::contains, 1)).isEmpty();
        assertThat(matches.sweep(_ -> true, _ -> false, 2)).containsExactly(named);
        assertThat(matches.isKnown(unnamed.decoder())).as("who knows what it means").isTrue();
    }

    @Test
    void whoWaitedOnceBeginsNothingWhenTheSameIdIsHeldAgain() {
        PushRegistration named = registration("d1", "p1");
        PushRegistration unnamed = registration("cmpl-1-00000000", "");
        for (PushRegistration waiting : List.of(named, unnamed)) {
            String id = waiting.equals(named) ? "p1" : "cmpl-1-aAfF09Bb";
            matches.register(waiting, AGENT, 0);
            assertMatch(matches.hold(id, BLOCKS), waiting, id, 0);
            matches.close(waiting.decoder(), 1);
            assertThat(matches.hold(id, BLOCKS)).as("nobody waits").isNull();
            assertThat(matches.isClosed(waiting.decoder())).isTrue();
        }
    }

    @Test
    void whatIsGoneDoesNotMakeAnIdUnclear() {
        matches.hold("cmpl-1-00000000", BLOCKS);
        matches.hold("cmpl-1-11111111", BLOCKS);
        matches.sweep(Set.of("cmpl-1-11111111")::contains, _ -> true, 1);
        PushRegistration first = registration("cmpl-1-22222222", "");
        assertMatch(matches.register(first, AGENT, 2), first, "cmpl-1-11111111", 2);

        matches.hold("cmpl-1-33333333", BLOCKS);
        PushRegistration second = registration("cmpl-1-44444444", "");
        assertMatch(matches.register(second, AGENT, 3), second, "cmpl-1-33333333", 3);
    }

    @Test
    void onceAllIsForgottenNothingOfItIsFound() {
        matches.hold("cmpl-1-00000000", BLOCKS);
        matches.clear(1);
        assertThat(matches.register(registration("cmpl-1-22222222", ""), AGENT, 2)).isNull();
        assertThat(matches.isActive(registration("cmpl-1-22222222", "").decoder())).isFalse();
    }

    @Test
    void onlyADashAndEightHexadecimalDigitsAreASuffix() {
        for (String other :
                List.of(
                        "cmpl-1-0000000g",
                        "cmpl-1-0000000/",
                        "cmpl-1-0000000:",
                        "cmpl-1-000000@0")) {
            matches.hold(other, BLOCKS);
            PushRegistration waiting = registration("cmpl-1-11111111", "");
            assertThat(matches.register(waiting, AGENT, 0)).as(other).isNull();
            matches.close(waiting.decoder(), 1);
        }
        matches.hold("-01234567", BLOCKS);
        PushRegistration bare = registration("-89abcdEF", "");
        assertMatch(matches.register(bare, AGENT, 2), bare, "-01234567", 2);
    }

    @Test
    void whatIsNotHeldAnyMoreMeetsNobody() {
        matches.hold("p1", BLOCKS);
        matches.hold("p2", BLOCKS);
        matches.sweep(Set.of("p2")::contains, _ -> true, 1);
        assertThat(matches.register(registration("d1", "p1"), AGENT, 2)).isNull();
        assertThat(matches.register(registration("d2", "p2"), AGENT, 2)).isNotNull();
    }

    @Test
    void aReleaseForgetsWhatIsHeldAndClosesWhatWaits() {
        matches.hold("p1", BLOCKS);
        PushRegistration waiting = registration("d2", "p2");
        matches.register(waiting, AGENT, 0);
        assertThat(matches.clear(1)).containsExactly(waiting);
        assertThat(matches.isFree("p1")).isFalse();
        assertThat(matches.hold("p2", BLOCKS)).isNull();
        assertThat(matches.isKnown(waiting.decoder())).as("it is over").isTrue();
        assertThat(matches.clear(2)).as("once").isEmpty();
    }

    /** Compared with one another, these would take hours. */
    @Test
    @Timeout(60)
    void aFloodOfRegistrationsCostsNoMoreThanItsLength() {
        int count = PushMatches.MAX_STAGED;
        for (int i = 0; i < count; i++) {
            matches.register(registration("cmpl-" + i + "-0123abcd", ""), AGENT, 0);
        }
        for (int i = 0; i < 20 * count; i++) {
            matches.hold("prompt-" + i + "-01234567", BLOCKS);
        }
        int[] looked = new int[2];
        for (int i = 0; i < 10; i++) {
            assertThat(matches.sweep(_ -> ++looked[0] > 0, _ -> ++looked[1] > 0, 1)).isEmpty();
        }
        assertThat(looked[0]).isEqualTo(10 * PushMatches.SWEEP);
        for (int i = 0; i < count; i++) {
            PushRegistration late = registration("prompt-" + i + "-89abcdef", "");
            assertMatch(matches.register(late, AGENT, 1), late, "prompt-" + i + "-01234567", 1);
            assertThat(matches.hold("cmpl-" + i + "-76543210", BLOCKS)).isNotNull();
        }
    }

    @Test
    void aSweepComesToAllThatWaitAndAllThatIsHeld() {
        int count = 3 * PushMatches.SWEEP;
        for (int i = 0; i < count; i++) {
            matches.register(registration("d" + i, "p" + i), AGENT, 0);
            matches.hold("q" + i, BLOCKS);
        }
        int vain = 0;
        for (int i = 0; i < 3; i++) {
            vain += matches.sweep(_ -> false, _ -> false, 1).size();
        }
        assertThat(vain).isEqualTo(count);
        assertThat(matches.isFree("q0") || matches.isFree("q" + (count - 1))).isFalse();
    }

    @Test
    void whatWaitsIsLimitedInBytesAndByRequest() {
        List<Integer> many = Collections.nCopies(1 << 18, 7);
        int fit = 0;
        while (fit < 1_000) {
            PushRegistration large = registration("d" + fit, "p" + fit, many);
            if (matches.isFull(large)) {
                break;
            }
            matches.register(large, AGENT, 0);
            fit++;
        }
        assertThat(fit * registration("d", "p", many).weightBytes())
                .isBetween(PushMatches.MAX_STAGED_BYTES / 2, PushMatches.MAX_STAGED_BYTES);
        assertThat(matches.clear(0)).hasSize(fit);
        assertThat(matches.isFull(registration("e", "p", many))).as("room again").isFalse();

        for (int i = 0; i < PushMatches.MAX_ALIKE; i++) {
            assertThat(matches.isFull(registration("e" + i, "p"))).isFalse();
            matches.register(registration("e" + i, "p"), AGENT, 0);
        }
        assertThat(matches.isFull(registration("one more", "p"))).isTrue();
        assertThat(matches.isFull(registration("one more", "other"))).isFalse();
    }

    @Test
    void theFirstOfThoseThatNameARequestGetsIt() {
        PushRegistration first = registration("d1", "p1");
        matches.register(first, AGENT, 3);
        matches.register(registration("d2", "p1"), AGENT, 4);
        assertMatch(matches.hold("p1", BLOCKS), first, "p1", 3);
        assertThat(matches.sweep(_ -> true, _ -> false, 5)).hasSize(1);
    }

    @Test
    void twoThatMayMeanARequestDoNotGetIt() {
        matches.register(registration("cmpl-1-00000000", ""), AGENT, 0);
        matches.register(registration("cmpl-1-11111111", ""), AGENT, 0);
        assertThat(matches.hold("cmpl-1-22222222", BLOCKS)).isNull();
        assertThat(matches.hold("cmpl-1-1111111g", BLOCKS)).as("no such suffix").isNull();
    }

    @Test
    void copiesOfOtherRanksCountIfTheySayTheSameAndTheShortestTimeHolds() {
        PushRegistration first = registration("d1", "p1");
        matches.register(first, AGENT, 0);
        assertThat(matches.registerAgain(registration("d1", "p2"), "liar")).isFalse();
        assertThat(matches.registerAgain(registration("d1", "p1", List.of(4, 6)), "liar"))
                .isFalse();
        assertThat(matches.registerAgain(registration("d2", "p1"), "liar")).isFalse();
        assertThat(matches.registerAgain(first, "second")).isTrue();
        assertThat(matches.senders(first.decoder())).containsExactly(AGENT, "second");
        matches.hold("p1", BLOCKS);
        assertThat(matches.registerAgain(first, "third")).isTrue();
        assertThat(matches.senders(first.decoder())).containsExactly(AGENT, "second", "third");
        assertThat(matches.close(first.decoder(), 1)).isEqualTo("p1");
        assertThat(matches.senders(first.decoder())).isEmpty();
        assertThat(matches.close(first.decoder(), 1)).isNull();

        matches.register(leased(30), AGENT, 0);
        matches.registerAgain(leased(20), "second");
        matches.registerAgain(leased(40), "third");
        assertThat(matches.lease(leased(30).decoder()).deadlineSeconds()).isEqualTo(20);
    }

    @Test
    void noMoreRegistrationsWaitThanAnyEngineHasRequests() {
        int limit = PushMatches.MAX_STAGED;
        for (int i = 0; i < limit; i++) {
            matches.register(registration("d" + i, "p" + i), AGENT, 0);
        }
        PushRegistration tooMany = registration("one more", "p");
        matches.register(tooMany, AGENT, 0);
        assertThat(matches.isKnown(tooMany.decoder())).isFalse();
        assertThat(matches.clear(1)).hasSize(limit);
    }

    private List<PushRegistration> sweep(long nowNanos) {
        return matches.sweep(_ -> true, _ -> true, nowNanos);
    }

    private static void assertMatch(
            PushMatches.@Nullable Match match,
            PushRegistration registration,
            String requestId,
            long arrivedNanos) {
        assertThat(Objects.requireNonNull(match))
                .isEqualTo(
                        new PushMatches.Match(
                                registration, AGENT, requestId, BLOCKS, arrivedNanos));
    }

    private static PushRegistration leased(double deadlineSeconds) {
        return new PushRegistration(
                new RemoteSource(
                        "D", "i", "d7", "h", 5600, 1, 1, 1, new RemoteLease(deadlineSeconds, 480)),
                List.of(4, 5),
                new RemoteSource("P", null, "p7", "h", 5601, 1, 1, 0));
    }

    private static PushRegistration registration(String id, String holderRequest) {
        return registration(id, holderRequest, List.of(4, 5));
    }

    private static PushRegistration registration(
            String id, String holderRequest, List<Integer> blocks) {
        return new PushRegistration(
                new RemoteSource("D", "i", id, "h", 5600, 1, 1, 1),
                blocks,
                new RemoteSource("P", null, holderRequest, "h", 5601, 1, 1, 0));
    }
}
