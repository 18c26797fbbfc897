package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The worker's half of several connectors in one. */
final class MultiWorkerTest {
    private static final Duration LIMIT = Duration.ofMillis(50);

    /** A worker's half that notes what it is asked. */
    private final class Half implements WorkerConnector {
        private final List<String> calls = new ArrayList<>();
        private final List<ConnectorStep> steps = new ArrayList<>();
        private WorkerReport report = NOTHING;
        private Duration takes = Duration.ZERO;
        private boolean released;
        private boolean refusesToRelease;
        private boolean refusesToRestore;
        private boolean failsToClose;

        @Override
        public void registerKvCaches(KvCacheRegions regions) {}

        @Override
        public RankPayload payload() {
            throw new IllegalStateException();
        }

        @Override
        public void start(ConnectorStep step) {
            steps.add(step);
        }

        @Override
        public void wakeWith(Runnable wake) {
            wake.run();
        }

        @Override
        public WorkerReport poll() {
            WorkerReport taken = report;
            report = NOTHING;
            return taken;
        }

        @Override
        public void prepareRelease(Duration limit) {
            calls.add("prepare within " + limit);
            nowNanos += takes.toNanos();
        }

        @Override
        public void releaseKvCaches(Duration limit) {
            calls.add("release within " + limit);
            nowNanos += takes.toNanos();
            if (refusesToRelease) {
                throw new ConnectorException("release: refused");
            }
            released = true;
        }

        @Override
        public void restoreKvCaches() {
            calls.add("restore");
            if (refusesToRestore) {
                throw new ConnectorException("restore: refused");
            }
            released = false;
        }

        @Override
        public boolean isReleased() {
            return released;
        }

        @Override
        public void close() {
            calls.add("close");
            if (failsToClose) {
                throw new ConnectorException("close: made to fail");
            }
        }
    }

    private static final WorkerReport NOTHING =
            new WorkerReport(Set.of(), Set.of(), Set.of(), TransferStatistics.NONE);

    private final List<Half> halves = List.of(new Half(), new Half(), new Half());
    private long nowNanos;
    private final WorkerConnector multi =
            MultiConnector.worker(List.copyOf(halves), () -> nowNanos);

    @Test
    void eachStartsItsOwnStep() {
        List<ConnectorStep> steps =
                Stream.of(1.0, 2.0, 3.0)
                        .map(
                                clock ->
                                        Steps.of(
                                                List.of(), Set.of(), Set.of(), Map.of(), List.of(),
                                                clock))
                        .toList();
        multi.start(ConnectorStep.of(steps));
        for (int i = 0; i < halves.size(); i++) {
            assertThat(halves.get(i).steps).containsExactly(steps.get(i));
        }
    }

    @Test
    void eachCanWakeTheEngine() {
        AtomicInteger woken = new AtomicInteger();
        multi.wakeWith(woken::incrementAndGet);
        assertThat(woken).hasValue(halves.size());
    }

    @Test
    void aReportUnitesAllReports() {
        halves.get(0).report = report("a", 1.5);
        halves.get(2).report = report("b", 2.5);
        WorkerReport report = multi.poll();
        assertThat(report.finishedSending()).containsExactlyInAnyOrder("sent a", "sent b");
        assertThat(report.renewedSending()).isEqualTo(Map.of("held a", 1.5, "held b", 2.5));
        assertThat(report.finishedReceiving()).containsExactlyInAnyOrder("got a", "got b");
        assertThat(report.failedReceiving()).containsExactlyInAnyOrder("failed a", "failed b");
        assertThat(report.abandonedReceiving()).containsExactlyInAnyOrder("left a", "left b");
        assertThat(report.failureReasons())
                .isEqualTo(Map.of("failed a", "reason a", "failed b", "reason b"));
        assertThat(report.children()).containsExactly(report("a", 1.5), NOTHING, report("b", 2.5));
    }

    private static WorkerReport report(String name, double untilSeconds) {
        return new WorkerReport(
                Set.of("sent " + name),
                Map.of("held " + name, untilSeconds),
                Set.of(),
                Set.of("got " + name),
                Set.of("failed " + name),
                Set.of("left " + name),
                Map.of("failed " + name, "reason " + name),
                Set.of(),
                TransferStatistics.NONE,
                List.of());
    }

    @Test
    void allArePreparedForAReleaseAndReleasedWithinOneLimit() {
        halves.get(0).takes = Duration.ofMillis(20);
        halves.get(1).takes = Duration.ofMillis(40);
        multi.prepareRelease(LIMIT);
        assertThat(calls())
                .containsExactly(
                        "prepare within PT0.05S", "prepare within PT0.03S", "prepare within PT0S");
        assertThat(multi.isReleased()).isFalse();
        halves.forEach(half -> half.calls.clear());
        multi.releaseKvCaches(LIMIT);
        assertThat(calls())
                .containsExactly(
                        "release within PT0.05S", "release within PT0.03S", "release within PT0S");
    }

    private List<String> calls() {
        return halves.stream().flatMap(half -> half.calls.stream()).toList();
    }

    @Test
    void aReleaseThatOneRefusesTellsAlsoWhichOthersStayReleased() {
        halves.get(1).refusesToRestore = true;
        halves.get(2).refusesToRelease = true;
        assertThatThrownBy(() -> multi.releaseKvCaches(LIMIT))
                .hasMessage("release: refused")
                .satisfies(
                        e ->
                                assertThat(e.getSuppressed())
                                        .extracting(Throwable::getMessage)
                                        .containsExactly("restore: refused"));
        assertThat(halves.get(0).isReleased()).as("restored nonetheless").isFalse();
        assertThat(multi.isReleased()).as("one is").isTrue();
        halves.get(1).refusesToRestore = false;
        multi.restoreKvCaches();
        assertThat(multi.isReleased()).isFalse();
    }

    @Test
    void whatWasReleasedBeforeIsNotRestored() {
        halves.get(0).released = true;
        halves.get(2).refusesToRelease = true;
        assertThatThrownBy(() -> multi.releaseKvCaches(LIMIT)).hasMessage("release: refused");
        assertThat(halves.get(0).calls).doesNotContain("restore");
        assertThat(halves.get(1).calls).contains("restore");
    }

    @Test
    void closingGoesOnAfterAFailure() {
        halves.getFirst().failsToClose = true;
        assertThatThrownBy(multi::close).hasMessageContaining("close failed");
        assertThat(halves).allMatch(half -> half.calls.contains("close"));
    }

    @Test
    void withoutConnectorsThereIsNone() {
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> MultiConnector.worker(List.of(), System::nanoTime))
                .withMessageContaining("no connectors");
    }
}
