package dev.dormouse.connector;

import static dev.dormouse.connector.RegistrationIdentity.Verdict.ASK;
import static dev.dormouse.connector.RegistrationIdentity.Verdict.READ;
import static dev.dormouse.connector.RegistrationIdentity.Verdict.STALE;
import static org.assertj.core.api.Assertions.assertThat;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What is loaded against what a request names, as a table. */
final class RegistrationIdentityTest {
    private static final RegistrationIdentity OURS = new RegistrationIdentity("a", 5, 5);
    private static final RegistrationIdentity VLLMS = new RegistrationIdentity(null, 5, 5);

    @Test
    void theSameRegistrationIsRead() {
        assertThat(OURS.judge(request("a", 5), false, false)).isEqualTo(READ);
        assertThat(VLLMS.judge(request(null, 5), false, false)).isEqualTo(READ);
    }

    @Test
    void anOlderOneIsStaleWithoutAQuestion() {
        assertThat(OURS.judge(request("a", 4), false, false)).isEqualTo(STALE);
        assertThat(VLLMS.judge(request(null, 4), false, false)).isEqualTo(STALE);
    }

    @Test
    void aNewerOneIsAskedForAndStaleIfThePeerDoesNotKnowIt() {
        assertThat(OURS.judge(request("a", 6), false, false)).isEqualTo(ASK);
        assertThat(OURS.judge(request("a", 6), true, false)).isEqualTo(STALE);
        assertThat(VLLMS.judge(request(null, 6), false, false)).isEqualTo(ASK);
    }

    @Test
    void anotherProcessIsAskedForWhateverItsEpoch() {
        for (long epoch : new long[] {0, 4, 5, 6}) {
            assertThat(OURS.judge(request("b", epoch), false, false)).isEqualTo(ASK);
            assertThat(OURS.judge(request("b", epoch), true, false)).isEqualTo(STALE);
        }
    }

    @Test
    void aProcessThatDoesNotNameItselfIsNotTheOneThatTheRequestNames() {
        for (long epoch : new long[] {0, 4, 5, 6}) {
            assertThat(VLLMS.judge(request("b", epoch), false, false)).isEqualTo(ASK);
            assertThat(VLLMS.judge(request("b", epoch), true, false)).isEqualTo(STALE);
        }
    }

    @Test
    void anIncompleteIdentityIsAskedForFirst() {
        assertThat(OURS.judge(request("a", 0), false, false)).isEqualTo(ASK);
        assertThat(OURS.judge(request("a", 0), true, true)).isEqualTo(READ);
        assertThat(OURS.judge(request(null, 0), false, false)).isEqualTo(ASK);
        assertThat(OURS.judge(request(null, 0), true, true)).isEqualTo(READ);
        assertThat(OURS.judge(request(null, 5), false, false)).isEqualTo(ASK);
        assertThat(OURS.judge(request(null, 5), true, true)).isEqualTo(READ);
        assertThat(OURS.judge(request(null, 4), false, false)).isEqualTo(ASK);
        assertThat(OURS.judge(request(null, 4), true, true)).isEqualTo(STALE);
        assertThat(OURS.judge(request(null, 6), true, true)).isEqualTo(STALE);
        assertThat(VLLMS.judge(request(null, 0), false, false)).isEqualTo(ASK);
        assertThat(VLLMS.judge(request(null, 0), true, false)).isEqualTo(READ);
    }

    @Test
    void anIncompleteIdentityIsReadOnlyIfItsHolderSaysSo() {
        for (long epoch : new long[] {0, 5}) {
            assertThat(OURS.judge(request(null, epoch), true, false)).isEqualTo(STALE);
        }
        assertThat(OURS.judge(request("a", 0), true, false)).isEqualTo(STALE);
    }

    @Test
    void aNoticeReachesTheProcessWhateverItsEpoch() {
        assertThat(OURS.reaches(request("a", 1))).isTrue();
        assertThat(OURS.reaches(request(null, 9))).isTrue();
        assertThat(VLLMS.reaches(request("b", 5))).isTrue();
        assertThat(OURS.reaches(request("b", 5))).isFalse();
    }

    @Test
    void aHandshakeThatStraddledARepublishServesNoRequest() {
        RegistrationIdentity straddled = new RegistrationIdentity("a", 4, 5);
        assertThat(straddled.judge(request("a", 3), false, false)).isEqualTo(STALE);
        assertThat(straddled.judge(request("a", 4), false, false))
                .as("some pages are gone")
                .isEqualTo(STALE);
        assertThat(straddled.judge(request("a", 5), false, false))
                .as("some are old")
                .isEqualTo(ASK);
        assertThat(straddled.judge(request("a", 5), true, false)).isEqualTo(STALE);
        assertThat(straddled.judge(request("a", 0), true, false)).isEqualTo(STALE);
    }

    private static RemoteSource request(@Nullable String instanceId, long epoch) {
        return new RemoteSource("P", instanceId, "r", "h", 1, 1, 1, epoch);
    }
}
