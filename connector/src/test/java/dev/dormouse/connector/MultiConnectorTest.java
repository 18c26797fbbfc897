package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.testkit.ModelTransport;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Several connectors in one. */
final class MultiConnectorTest {
    private static final Duration LIMIT = Duration.ofMillis(50);
    private static final ConnectorRequest REQUEST = new ConnectorRequest("r", 8, null);
    private static final int[] BLOCKS = {1, 2};

    /** A scheduler's half that notes what it is asked. */
    private static final class Half implements SchedulerConnector {
        private final List<String> calls = new ArrayList<>();
        private final List<ConnectorRequest> asked = new ArrayList<>();
        private int offers;
        private boolean holds;
        private @Nullable String writes;
        private boolean failsToClose;
        private long epoch;
        private int held;
        private int port;
        private List<RankPayload> published = List.of();

        @Override
        public void onArrival(ConnectorRequest request) {
            calls.add("arrival " + request.id());
            asked.add(request);
        }

        @Override
        public int externalTokens(ConnectorRequest request, int localTokens) {
            calls.add("asked");
            return offers;
        }

        @Override
        public void onAllocated(
                ConnectorRequest request, int[] blocks, int localTokens, int externalTokens) {
            calls.add("allocated " + blocks.length + " external " + externalTokens);
            asked.add(request);
        }

        @Override
        public ConnectorStep step() {
            return Steps.of(List.of(), Set.of(), Set.of(), Map.of(), List.of(), 0);
        }

        @Override
        public void onReport(WorkerReport report) {
            calls.add("report " + report.finishedSending());
        }

        @Override
        public HandOver onFinished(
                ConnectorRequest request, FinishKind kind, int[] blocks, int computedTokens) {
            asked.add(request);
            return new HandOver(
                    holds,
                    writes == null
                            ? null
                            : KvTransferParams.of(
                                    JsonNodeFactory.instance.objectNode().put(writes, 1)));
        }

        @Override
        public boolean endHold(String requestId) {
            calls.add("end " + requestId);
            return holds;
        }

        @Override
        public void publish(List<RankPayload> payloads) {
            published = payloads;
        }

        @Override
        public void withdraw() {
            calls.add("withdrawn");
        }

        @Override
        public void revoke() {
            calls.add("revoked");
        }

        @Override
        public void drain(boolean draining) {
            calls.add("draining " + draining);
        }

        @Override
        public long epoch() {
            return epoch;
        }

        @Override
        public int heldRequests() {
            return held;
        }

        @Override
        public int sideChannelPort() {
            return port;
        }

        @Override
        public void close() {
            calls.add("closed");
            if (failsToClose) {
                throw new ConnectorException("close: made to fail");
            }
        }
    }

    private final List<Half> halves = List.of(new Half(), new Half(), new Half());
    private final SchedulerConnector multi = MultiConnector.scheduler(List.copyOf(halves));

    @Test
    void theOneThatHoldsARequestForTheNextTurnEndsIt() {
        assertThat(multi.endHold("r")).isFalse();
        halves.get(1).holds = true;
        assertThat(multi.endHold("r")).isTrue();
        assertThat(halves.get(0).calls).containsExactly("end r", "end r");
        assertThat(halves.get(2).calls).containsExactly("end r");
    }

    @Test
    void theFirstThatHasSomethingLoadsAndTheOthersSeeTheBlocks() {
        halves.get(1).offers = 4;
        halves.get(2).offers = 8;
        multi.onArrival(REQUEST);
        assertThat(multi.externalTokens(REQUEST, 0)).isEqualTo(4);
        multi.onAllocated(REQUEST, BLOCKS, 0, 4);
        assertThat(halves.get(0).calls).contains("asked", "allocated 2 external 0");
        assertThat(halves.get(1).calls).contains("asked", "allocated 2 external 4");
        assertThat(halves.get(2).calls).contains("allocated 2 external 0");
    }

    /** It would tell the holder that nobody reads, while another connector does. */
    @Test
    void whoDoesNotLoadARequestNeverHearsThatItIsHeldElsewhere() {
        ConnectorRequest request = new ConnectorRequest("r", 8, Params.remote(_ -> {}));
        halves.get(1).offers = 4;
        halves.get(2).offers = 8;
        multi.onArrival(request);
        assertThat(multi.externalTokens(request, 0)).isEqualTo(4);
        multi.onAllocated(request, BLOCKS, 0, 4);
        halves.get(1).offers = 0; // it reads once
        assertThat(multi.externalTokens(request, 0)).as("after a preemption").isZero();
        multi.onAllocated(request, BLOCKS, 0, 0);
        multi.onFinished(request, FinishKind.LENGTH, BLOCKS, 8);
        assertThat(halves.get(1).asked).hasSize(4).allMatch(MultiConnectorTest::isHeldElsewhere);
        assertThat(halves.get(0).asked).hasSize(4).noneMatch(MultiConnectorTest::isHeldElsewhere);
        assertThat(halves.get(2).asked).hasSize(4).noneMatch(MultiConnectorTest::isHeldElsewhere);
    }

    private static boolean isHeldElsewhere(ConnectorRequest request) {
        return Objects.requireNonNull(request.params()).remotePrefill();
    }

    @Test
    void nobodyLoadsIfNobodyHasAnything() {
        multi.onArrival(REQUEST);
        assertThat(multi.externalTokens(REQUEST, 0)).isZero();
        multi.onAllocated(REQUEST, BLOCKS, 0, 0);
        assertThat(halves).allMatch(half -> half.calls.contains("allocated 2 external 0"));
    }

    @Test
    void oneMayHandARequestOverAndNoOther() {
        halves.get(1).holds = true;
        halves.get(1).writes = "a";
        HandOver handOver = multi.onFinished(REQUEST, FinishKind.LENGTH, BLOCKS, 8);
        assertThat(handOver.holdBlocks()).isTrue();
        assertThat(Objects.requireNonNull(handOver.params()).toJson()).hasToString("{\"a\":1}");
        halves.get(1).holds = false;
        assertThat(multi.onFinished(REQUEST, FinishKind.LENGTH, BLOCKS, 8).params()).isNotNull();
        for (Half other : List.of(halves.get(0), halves.get(2))) {
            other.holds = true;
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(() -> multi.onFinished(REQUEST, FinishKind.LENGTH, BLOCKS, 8))
                    .withMessageContaining("request=r: two connectors hand it over");
            other.holds = false;
        }
    }

    @Test
    void everythingElseReachesAllAndClosingGoesOnAfterAFailure() {
        halves.getFirst().failsToClose = true;
        multi.onArrival(REQUEST);
        multi.withdraw();
        multi.revoke();
        multi.drain(true);
        assertThatThrownBy(multi::close).hasMessageContaining("close failed");
        assertThat(halves)
                .allMatch(
                        half ->
                                half.calls.containsAll(
                                        List.of(
                                                "arrival r",
                                                "withdrawn",
                                                "revoked",
                                                "draining true",
                                                "closed")));
    }

    @Test
    void eachPublishesItsOwnPayloadsOfAllRanks() {
        List<RankPayload> ranks = List.of(ofRank(0), ofRank(1));
        multi.publish(ranks);
        for (int i = 0; i < halves.size(); i++) {
            assertThat(halves.get(i).published)
                    .containsExactly(
                            ranks.get(0).children().get(i), ranks.get(1).children().get(i));
        }
    }

    /** The payload of a rank with three connectors, each of which has another agent. */
    private static RankPayload ofRank(int tpRank) {
        List<RankPayload> children =
                IntStream.range(0, 3)
                        .mapToObj(
                                child ->
                                        new RankPayload(
                                                0,
                                                tpRank,
                                                new ModelWorld()
                                                        .start("child" + child)
                                                        .rank()
                                                        .worker()
                                                        .payload()
                                                        .metadata()))
                        .toList();
        return children.getFirst().with(children);
    }

    @Test
    void theFirstSpeaksForAllAndWhatIsHeldIsCountedOfAll() {
        for (int i = 0; i < halves.size(); i++) {
            halves.get(i).epoch = 7L + i;
            halves.get(i).port = 5_600 + i;
            halves.get(i).held = 1 + i;
        }
        assertThat(multi.epoch()).isEqualTo(7);
        assertThat(multi.sideChannelPort()).isEqualTo(5_600);
        assertThat(multi.heldRequests()).isEqualTo(6);
    }

    @Test
    void aRequestIsSentWhenItsHolderHasSentItOnEveryRankAndOnlyTheHolderHearsOfIt() {
        RankReports reports = new RankReports(2);
        List<List<Sending>> ranks =
                IntStream.range(0, 2)
                        .mapToObj(_ -> List.of(new Sending(), new Sending(), new Sending()))
                        .toList();
        List<WorkerConnector> workers =
                ranks.stream()
                        .map(each -> MultiConnector.worker(List.copyOf(each), System::nanoTime))
                        .toList();
        workers.forEach(worker -> worker.start(multi.step()));
        ranks.get(0).get(2).sends = Set.of("r");
        assertThat(report(reports, workers).finishedSending()).as("one rank").isEmpty();
        ranks.get(1).get(2).sends = Set.of("r");
        assertThat(report(reports, workers).finishedSending()).containsExactly("r");
        assertThat(halves.get(0).calls).doesNotContain("report [r]");
        assertThat(halves.get(1).calls).doesNotContain("report [r]");
        assertThat(halves.get(2).calls).contains("report [r]");
    }

    private WorkerReport report(RankReports reports, List<WorkerConnector> workers) {
        WorkerReport merged = reports.merge(workers.stream().map(WorkerConnector::poll).toList());
        multi.onReport(merged);
        return merged;
    }

    /** A worker's half that sends what the test says. */
    private static final class Sending implements WorkerConnector {
        private Set<String> sends = Set.of();

        @Override
        public void registerKvCaches(KvCacheRegions regions) {}

        @Override
        public RankPayload payload() {
            throw new IllegalStateException();
        }

        @Override
        public void start(ConnectorStep step) {}

        @Override
        public WorkerReport poll() {
            WorkerReport report =
                    new WorkerReport(sends, Set.of(), Set.of(), TransferStatistics.NONE);
            sends = Set.of();
            return report;
        }

        @Override
        public void prepareRelease(Duration limit) {}

        @Override
        public void releaseKvCaches(Duration limit) {}

        @Override
        public void restoreKvCaches() {}

        @Override
        public boolean isReleased() {
            return false;
        }

        @Override
        public void close() {}
    }

    @Test
    void aReleaseThatOneRefusesIsUndoneOnThoseBeforeIt() {
        ModelWorld world = new ModelWorld();
        ModelEngine shape = world.start("shape");
        ModelMemory memory = shape.rank().memory();
        List<ModelTransport> transports =
                List.of(world.fabric().open("a", memory), world.fabric().open("b", memory));
        WorkerConnector worker =
                MultiConnector.worker(
                        transports.stream()
                                .map(
                                        transport ->
                                                PullConnector.worker(
                                                        shape.config(),
                                                        0,
                                                        transport,
                                                        world.surroundings()))
                                .toList(),
                        world::nanoTime);
        worker.registerKvCaches(shape.rank().regions());
        assertThat(worker.payload().children()).hasSize(2);
        transports.getLast().faults().failDeregistrations(1);
        assertThatThrownBy(() -> worker.releaseKvCaches(LIMIT))
                .isInstanceOf(TransportException.class);
        assertThat(worker.isReleased()).isFalse();
        assertThat(transports).allMatch(each -> each.counts().registrations() == 1);
        worker.releaseKvCaches(LIMIT);
        assertThat(worker.isReleased()).isTrue();
        assertThat(transports).allMatch(each -> each.counts().registrations() == 0);
        worker.restoreKvCaches();
        assertThat(worker.payload().children()).hasSize(2);
        worker.close();
    }
}
