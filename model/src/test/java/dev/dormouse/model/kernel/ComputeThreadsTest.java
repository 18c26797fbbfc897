package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;

final class ComputeThreadsTest {
    private static List<Thread> poolThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("dormouse-compute-"))
                .toList();
    }

    @Test
    void everyUnitRunsOnceAndThreadsKeepTheirNumbers() {
        Seeded.forAll(
                20,
                random -> {
                    int count = 1 + random.nextInt(4);
                    try (ComputeThreads threads = new ComputeThreads(count)) {
                        for (int loop = 0; loop < 50; loop++) {
                            int units = random.nextInt(200);
                            AtomicIntegerArray runs = new AtomicIntegerArray(units);
                            AtomicIntegerArray inside = new AtomicIntegerArray(count);
                            threads.run(
                                    units,
                                    1 + random.nextInt(5),
                                    (from, to, thread) -> {
                                        assertThat(inside.incrementAndGet(thread)).isOne();
                                        for (int i = from; i < to; i++) {
                                            runs.incrementAndGet(i);
                                        }
                                        inside.decrementAndGet(thread);
                                    });
                            for (int i = 0; i < units; i++) {
                                assertThat(runs.get(i)).as("unit %d of %d", i, units).isOne();
                            }
                        }
                    }
                });
    }

    @Test
    void threadsWorkAtTheSameTime() {
        try (ComputeThreads threads = new ComputeThreads(3)) {
            CountDownLatch all = new CountDownLatch(3);
            threads.run(
                    3,
                    1,
                    (from, to, thread) -> {
                        all.countDown();
                        await(all);
                    });
            assertThat(all.getCount()).isZero();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void anExceptionInAHelperReachesTheCallerAndLeavesThePoolUsable() {
        try (ComputeThreads threads = new ComputeThreads(2)) {
            CountDownLatch both = new CountDownLatch(2);
            IllegalStateException thrown = new IllegalStateException("a unit failed");
            assertThatThrownBy(
                            () ->
                                    threads.run(
                                            2,
                                            1,
                                            (from, to, thread) -> {
                                                both.countDown();
                                                await(both);
                                                if (thread == 1) {
                                                    throw thrown;
                                                }
                                            }))
                    .isSameAs(thrown);
            AtomicIntegerArray runs = new AtomicIntegerArray(2);
            threads.run(2, 1, (from, to, thread) -> runs.incrementAndGet(from));
            assertThat(runs.get(0) + runs.get(1)).isEqualTo(2);
        }
    }

    @Test
    void idleThreadsParkAndClosedOnesEnd() {
        ComputeThreads threads = new ComputeThreads(3);
        List<Thread> own = poolThreads();
        assertThat(own)
                .extracting(Thread::getName)
                .contains("dormouse-compute-1", "dormouse-compute-2");
        threads.run(64, 1, (from, to, thread) -> {});
        for (Thread thread : own) {
            Await.until(
                    thread.getName() + " parked",
                    () -> thread.getState() == Thread.State.WAITING || !thread.isAlive());
        }
        threads.close();
        threads.close();
        assertThat(own).noneMatch(Thread::isAlive);
        assertThatThrownBy(() -> threads.run(1, 1, (from, to, thread) -> {}))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
    }

    @Test
    void parkedThreadsComeBack() {
        try (ComputeThreads threads = new ComputeThreads(2)) {
            for (int loop = 0; loop < 3; loop++) {
                for (Thread thread : poolThreads()) {
                    Await.until(
                            "a parked thread",
                            () -> thread.getState() == Thread.State.WAITING || !thread.isAlive());
                }
                CountDownLatch both = new CountDownLatch(2);
                threads.run(
                        2,
                        1,
                        (from, to, thread) -> {
                            both.countDown();
                            await(both);
                        });
            }
        }
    }
}
