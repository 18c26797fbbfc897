package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class InboxTest {
    private final Inbox inbox = new Inbox(1);

    private Thread waiter() {
        return Thread.ofPlatform().start(this::awaitForLong);
    }

    private void awaitForLong() {
        try {
            inbox.await(TimeUnit.DAYS.toNanos(1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void awaitWaiting(Thread thread) {
        Await.until("it waits", () -> thread.getState() == Thread.State.TIMED_WAITING);
    }

    @Test
    void aWakeEndsAWait() throws Exception {
        Thread waiter = waiter();
        awaitWaiting(waiter);
        inbox.wake();
        waiter.join();
        assertThat(inbox.takeAll()).isEmpty();
    }

    @Test
    void aWakeThatComesBeforeAWaitEndsThatOneAndNoOther() throws Exception {
        inbox.wake();
        inbox.wake();
        awaitForLong();
        Thread waiter = waiter();
        awaitWaiting(waiter);
        inbox.offer(new Command.Abort("one"));
        waiter.join();
        assertThat(inbox.takeAll()).hasSize(1);
    }
}
