package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.dormouse.testkit.ModelTransport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Reads of an engine with several connectors, where more than one could read: what one of them does
 * must not be undone by another.
 */
final class MultiReadTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {5, 0};
    private static final int TOKENS = 8;

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");

    /** A decode engine with these connectors, beside the memory of a model engine. */
    private final class Reader {
        private final ModelEngine shape = world.start("shape");
        private final List<ModelTransport> transports = new ArrayList<>();
        private final SchedulerConnector scheduler;
        private final WorkerConnector worker;
        private final Set<String> received = new HashSet<>();
        private final Set<String> failed = new HashSet<>();

        Reader(ConnectorConfig.Builder... connectors) {
            List<SchedulerConnector> schedulers = new ArrayList<>();
            List<WorkerConnector> workers = new ArrayList<>();
            for (ConnectorConfig config :
                    Stream.of(connectors).map(each -> each.build()).toList()) {
                ModelTransport transport =
                        world.fabric().open(world.nextAgentName(), shape.rank().memory());
                transports.add(transport);
                if (config.factors().isPush()) {
                    schedulers.add(new PushScheduler(config, world.surroundings(), () -> {}));
                    workers.add(
                            new PushWorker(config, 0, transport, world.surroundings(), () -> {}));
                } else {
                    schedulers.add(new PullScheduler(config, world.surroundings(), () -> {}));
                    workers.add(
                            new PullWorker(config, 0, transport, world.surroundings(), () -> {}));
                }
            }
            scheduler = MultiConnector.scheduler(schedulers);
            worker = MultiConnector.worker(workers, world::nanoTime);
            worker.registerKvCaches(shape.rank().regions());
            scheduler.publish(List.of(worker.payload()));
        }

        ConnectorRequest arrive(String id, KvTransferParams params) {
            ConnectorRequest request = new ConnectorRequest(id, TOKENS, params);
            scheduler.onArrival(request);
            return request;
        }

        void settle() {
            run(30);
        }

        void run(int ticks) {
            for (int i = 0; i < ticks; i++) {
                worker.start(scheduler.step());
                world.tick();
                WorkerReport report = worker.poll();
                scheduler.onReport(report);
                received.addAll(report.finishedReceiving());
                failed.addAll(report.failedReceiving());
            }
        }
    }

    private Reader twoThatRead() {
        return new Reader(world.config("D0"), world.config("D1"));
    }

    @Test
    void ofTwoThatCouldReadOneDoesAndTheOtherDoesNotTellTheHolderThatNobodyDoes() {
        Reader d = twoThatRead();
        ConnectorRequest request = d.arrive("d1", p.prefill("p1", TOKENS, P_BLOCKS, 1));
        int external = d.scheduler.externalTokens(request, 0);
        assertThat(external).isEqualTo(TOKENS);
        d.scheduler.onAllocated(request, D_BLOCKS, 0, external);
        d.settle();
        assertThat(d.received).containsExactly("d1");
        assertThat(d.failed).isEmpty();
        assertThat(d.shape.holds(D_BLOCKS, 1)).isTrue();
        assertThat(d.scheduler.externalTokens(request, 0)).as("after a preemption").isZero();
        HandOver _ = d.scheduler.onFinished(request, FinishKind.LENGTH, D_BLOCKS, TOKENS);
        d.settle();
        assertToldOnce("p1");
    }

    /** What vLLM's engines are told they cannot doubt: they know no claims. */
    @Test
    void aHolderOfVllmIsNotToldToLetGoWhileOneOfTwoReads() {
        world.sideChannels().serveLikeVllm(p.address());
        Reader d = twoThatRead();
        KvTransferParams params =
                Params.changed(
                        p.prefill("p1", TOKENS, P_BLOCKS, 1),
                        json -> {
                            json.remove("remote_instance_id");
                            json.remove("remote_registration_epoch");
                        });
        d.transports.get(0).faults().setReadDelay(Duration.ofMillis(20));
        ConnectorRequest request = d.arrive("d1", params);
        d.scheduler.onAllocated(request, D_BLOCKS, 0, d.scheduler.externalTokens(request, 0));
        d.run(15);
        assertThat(d.received).as("is read").isEmpty();
        assertThat(p.sent()).isEmpty();
        d.settle();
        assertThat(d.received).containsExactly("d1");
        assertThat(d.failed).isEmpty();
        assertToldOnce("p1");
    }

    @Test
    void aPromptThatIsHereOrNeverRanIsToldToItsHolderByOne() {
        Reader d = twoThatRead();
        ConnectorRequest here = d.arrive("d1", p.prefill("p1", TOKENS, P_BLOCKS, 1));
        assertThat(d.scheduler.externalTokens(here, TOKENS)).isZero();
        d.scheduler.onAllocated(here, D_BLOCKS, TOKENS, 0);
        d.settle();
        assertToldOnce("p1");
        ConnectorRequest neverRan = d.arrive("d2", p.prefill("p2", TOKENS, P_BLOCKS, 1));
        HandOver _ = d.scheduler.onFinished(neverRan, FinishKind.ABORTED, new int[0], 0);
        d.settle();
        assertToldOnce("p2");
        assertThat(d.received).isEmpty();
    }

    @Test
    void theLeaseOfARequestThatWaitsIsRenewedByTheOneThatWillRead() {
        Reader d = twoThatRead();
        ConnectorRequest request = d.arrive("d1", p.prefill("p1", TOKENS, P_BLOCKS, 1));
        for (int second = 0; second < 60; second += 5) {
            List<ConnectorStep> steps = d.scheduler.step().children();
            assertThat(steps.get(0).heartbeats()).hasSize(1);
            assertThat(steps.get(1).heartbeats()).isEmpty();
            world.elapse(Duration.ofSeconds(5));
        }
        HandOver _ = d.scheduler.onFinished(request, FinishKind.ABORTED, new int[0], 0);
        assertThat(d.scheduler.step().children().get(0).heartbeats()).isEmpty();
    }

    /** A push must bring the whole end of a prompt; what a router forwards may lack the mode. */
    @Test
    void whoeverWasAskedFirstAndCouldNotReadForgetsThatAnotherHoldsIt() {
        Reader d = new Reader(world.pushConfig("D0"), world.config("D1"));
        KvTransferParams params =
                Params.changed(
                        p.prefill("p1", TOKENS, P_BLOCKS, 1),
                        json -> {
                            json.remove("transfer_mode");
                            ((ArrayNode) json.withArray("remote_block_ids").get(0)).remove(1);
                        });
        ConnectorRequest request = d.arrive("d1", params);
        int external = d.scheduler.externalTokens(request, 0);
        assertThat(external).isEqualTo(TOKENS / 2);
        d.scheduler.onAllocated(request, D_BLOCKS, 0, external);
        ConnectorStep pushes = d.scheduler.step().children().getFirst();
        assertThat(pushes.heartbeats()).isEmpty();
        assertThat(pushes.reads()).isEmpty();
    }

    @Test
    void whicheverComesFirstEachTakesThePromptsOfItsOwnMode() {
        ModelEngine pushing = world.start(world.pushConfig("P2"));
        for (Reader d :
                List.of(
                        new Reader(world.config("D0"), world.pushConfig("D1")),
                        new Reader(world.pushConfig("D2"), world.config("D3")))) {
            for (ModelEngine holder : List.of(p, pushing)) {
                String id = holder.config().engineId() + d.scheduler.sideChannelPort();
                KvTransferParams params = holder.prefill(id, TOKENS, P_BLOCKS, 7);
                ConnectorRequest request = d.arrive("d" + id, params);
                d.shape.fill(D_BLOCKS, 99);
                d.scheduler.onAllocated(
                        request, D_BLOCKS, 0, d.scheduler.externalTokens(request, 0));
                d.settle();
                assertThat(d.received).contains("d" + id);
                assertThat(d.failed).isEmpty();
                assertThat(d.shape.holds(D_BLOCKS, 7)).isTrue();
                assertThat(holder.sent()).contains(id);
            }
        }
    }

    private void assertToldOnce(String id) {
        assertThat(p.sent()).contains(id);
        assertThat(p.scheduler().heldRequests()).isZero();
        assertThat(p.statistics().notificationsAfterExpiry()).isZero();
        assertThat(world.sideChannels().fetches()).as("by one connector").isEqualTo(1);
    }
}
