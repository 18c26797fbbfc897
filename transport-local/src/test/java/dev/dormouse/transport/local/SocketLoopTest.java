package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class SocketLoopTest {
    /** Something whose time is over at once; what it throws is the loop's to bear. */
    private static class Due implements Watched {
        final AtomicInteger calls = new AtomicInteger();
        final AtomicInteger abandoned = new AtomicInteger();

        @Override
        public int descriptor() {
            return -1;
        }

        @Override
        public int interest() {
            return 0;
        }

        @Override
        public boolean hasDeadline() {
            return true;
        }

        @Override
        public long deadlineNanos() {
            return System.nanoTime();
        }

        @Override
        public void ready(int events) {}

        @Override
        public void expired() {
            calls.incrementAndGet();
            throw new StackOverflowError("by a peer's doing");
        }

        @Override
        public void abandon() {
            abandoned.incrementAndGet();
        }
    }

    @Test
    void whatWatchesItselfAgainWhenItIsGivenUpIsServedOn() {
        try (SocketLoop loop = new SocketLoop()) {
            Due due =
                    new Due() {
                        @Override
                        public void abandon() {
                            super.abandon();
                            if (abandoned.get() < 3) {
                                loop.watch(this);
                            }
                        }
                    };
            loop.watch(due);

            Await.until("it is given up for good", () -> due.abandoned.get() == 3);
            assertThat(due.calls).hasValue(3);
        }
    }

    @Test
    void whatCannotEvenBeAskedWhatItWaitsForHoldsNobodyUp() {
        try (SocketLoop loop = new SocketLoop()) {
            AtomicInteger asked = new AtomicInteger();
            Due unsound =
                    new Due() {
                        @Override
                        public int descriptor() {
                            asked.incrementAndGet();
                            throw new IllegalStateException("no descriptor");
                        }
                    };
            Due sound = new Due();
            loop.watch(unsound);
            Await.until("it is asked again", () -> asked.get() >= 2);
            loop.forget(unsound);
            loop.watch(sound);

            Await.until("the other one is served", () -> sound.abandoned.get() == 1);
        }
    }

    @Test
    void anErrorEndsTheConnectionThatItCameFromAndNoOther() {
        try (SocketLoop loop = new SocketLoop()) {
            Due failingTwice =
                    new Due() {
                        @Override
                        public void abandon() {
                            super.abandon();
                            throw new StackOverflowError("by a peer's doing, again");
                        }
                    };
            for (Due due : List.of(failingTwice, new Due())) {
                loop.watch(due);

                Await.until("it is given up", () -> due.abandoned.get() == 1);
                assertThat(due.calls).hasValue(1);
            }
        }
    }
}
