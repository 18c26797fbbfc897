package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** When readers are asked whether they are done, and when all are. */
final class RevokerTest {
    private static final Revocation REVOCATION = new Revocation("P", "pi", 4, 7);
    private static final Subscription.Reader READER =
            new Subscription.Reader("D", "di", new SideChannelAddress("127.0.0.1", 5600));

    private final ModelExecutor threads = new ModelExecutor();
    private final Revoker revoker = new Revoker((_, _) -> conversation(), threads);
    private int questions;
    private boolean reachable = true;
    private boolean done;
    private long nowNanos = Duration.ofSeconds(100).toNanos();

    @Test
    void aReaderIsAskedUntilItSaysThatItIsDone() {
        begin(true);
        progress(Duration.ZERO);
        progress(Duration.ZERO);
        progress(Duration.ofMillis(4));
        assertThat(questions).as("busy: not asked again at once").isEqualTo(1);
        assertThat(revoker.isComplete()).isFalse();
        done = true;
        progress(Duration.ofMillis(1));
        assertThat(questions).isEqualTo(2);
        progress(Duration.ZERO);
        assertThat(revoker.isComplete()).isTrue();
        progress(Duration.ofSeconds(10));
        assertThat(questions).as("who is done is left alone").isEqualTo(2);
    }

    @Test
    void aReaderThatCannotBeReachedIsAskedLessOften() {
        reachable = false;
        begin(true);
        progress(Duration.ZERO);
        progress(Duration.ZERO);
        assertThat(questions).isEqualTo(1);
        progress(Duration.ofMillis(499));
        assertThat(questions).isEqualTo(1);
        progress(Duration.ofMillis(1));
        assertThat(questions).isEqualTo(2);
        assertThat(revoker.isComplete()).isFalse();
    }

    @Test
    void withReadersWhomNobodyKnowsItIsNeverComplete() {
        done = true;
        begin(false);
        progress(Duration.ZERO);
        progress(Duration.ZERO);
        assertThat(revoker.isComplete()).isFalse();
        assertThat(revoker.isActive()).isTrue();
    }

    @Test
    void whatHasEndedAsksNobodyAndTheNextBeginsAnew() {
        begin(true);
        revoker.end();
        assertThat(revoker.isActive()).isFalse();
        progress(Duration.ZERO);
        assertThat(questions).isZero();
        revoker.begin(REVOCATION, Set.of(), true, nowNanos);
        assertThat(revoker.isComplete()).as("nobody is left to ask").isTrue();
        begin(true);
        revoker.begin(REVOCATION, Set.of(), true, nowNanos);
        assertThat(revoker.isComplete()).as("those of before are not waited for").isTrue();
    }

    private void begin(boolean allKnown) {
        revoker.begin(REVOCATION, Set.of(READER), allKnown, nowNanos);
    }

    /** Time passes, and all questions that it is time for are asked and answered. */
    private void progress(Duration passed) {
        nowNanos += passed.toNanos();
        revoker.progress(nowNanos);
        boolean _ = threads.runNext();
    }

    private SideChannel.Conversation conversation() throws IOException {
        questions++;
        if (!reachable) {
            throw new IOException("injected");
        }
        return new SideChannel.Conversation() {
            @Override
            public SideChannel.Answer ask(byte[] question) {
                assertThat(Revocation.decode(question)).isEqualTo(REVOCATION);
                return new SideChannel.Answer(
                        new DemandReply("D", "di", done).encode(), new byte[0]);
            }

            @Override
            public void close() {}
        };
    }
}
