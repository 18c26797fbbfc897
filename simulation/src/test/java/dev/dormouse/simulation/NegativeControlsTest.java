package dev.dormouse.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorStep;
import dev.dormouse.connector.HandOver;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.RankMemory;
import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelTransport;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A rule is taken away: some world must notice, and by what is meant to notice it. */
final class NegativeControlsTest {
    private static final int SEEDS = 300;

    @Test
    void aRegistrationThatOutlivesItsPagesGivesWrongTokens() {
        expect(
                "WRONG TOKEN",
                new Tampering() {
                    @Override
                    public ConnectorConfig.Builder settings(ConnectorConfig.Builder settings) {
                        return settings.skipReregistration(true);
                    }

                    @Override
                    public boolean checksMemory() {
                        return false;
                    }
                });
    }

    @Test
    void aRegistrationThatOutlivesItsPagesIsSeenBeforeAnybodyReads() {
        expect(
                "of pages, but",
                new Tampering() {
                    @Override
                    public ConnectorConfig.Builder settings(ConnectorConfig.Builder settings) {
                        return settings.skipReregistration(true);
                    }
                });
    }

    @Test
    void mappingsThatOutliveTheirPagesGiveWrongTokens() {
        expect(
                "WRONG TOKEN",
                new Tampering() {
                    @Override
                    public Setting setting(Setting drawn) {
                        return mapped(drawn);
                    }

                    @Override
                    public ConnectorConfig.Builder settings(ConnectorConfig.Builder settings) {
                        return settings.skipReregistration(true);
                    }

                    @Override
                    public boolean checksMemory() {
                        return false;
                    }
                });
    }

    @Test
    void aMappingThatIsKeptByAReaderWhoSaysThatItIsGoneIsSeen() {
        expect(
                "of pages, but",
                new Tampering() {
                    @Override
                    public Setting setting(Setting drawn) {
                        return mapped(drawn);
                    }

                    @Override
                    public void opened(ModelTransport transport) {
                        transport.faults().setFeigns(true);
                    }
                });
    }

    @Test
    void blocksThatAreNotHeldForTheirReaderGiveWrongTokens() {
        expect(
                "WRONG TOKEN",
                halves(
                        scheduler ->
                                (proxy, method, arguments) -> {
                                    Object result = scheduler.invoke(proxy, method, arguments);
                                    return method.getName().equals("onFinished")
                                            ? new HandOver(false, ((HandOver) result).params())
                                            : result;
                                },
                        UnaryOperator.identity()));
    }

    @Test
    void aChangedConversationThatIsNotComparedGivesWrongTokens() {
        expect(
                "WRONG TOKEN",
                halves(
                        scheduler ->
                                (proxy, method, arguments) -> {
                                    Object result = scheduler.invoke(proxy, method, arguments);
                                    return result instanceof HandOver handOver
                                            ? withoutHashOfTurn(handOver)
                                            : result;
                                },
                        UnaryOperator.identity()));
    }

    @Test
    void blocksOfAStuckReadThatAreUsedAgainGiveWrongTokens() {
        expect(
                "WRONG TOKEN",
                halves(
                        UnaryOperator.identity(),
                        worker ->
                                (proxy, method, arguments) -> {
                                    Object result = worker.invoke(proxy, method, arguments);
                                    return result instanceof WorkerReport report
                                            ? withoutQuarantine(report)
                                            : result;
                                }));
    }

    @Test
    void aReaderThatClaimsToObeyARevocationReadsWhatIsGone() {
        Tampering lies = halves(UnaryOperator.identity(), Liar::new);
        expect(
                "WRONG TOKEN",
                new Tampering() {
                    // Slow reads of addresses, whose pages sleep and wake meanwhile.
                    @Override
                    public Setting setting(Setting drawn) {
                        return new Setting(
                                Addressing.VIRTUAL,
                                drawn.kvHeads(),
                                drawn.engines(),
                                false,
                                true,
                                4 * drawn.events());
                    }

                    @Override
                    public ConnectorHalves halves(ConnectorHalves halves) {
                        return lies.halves(halves);
                    }

                    @Override
                    public void opened(ModelTransport transport) {
                        transport.faults().setReadDelay(Duration.ofMillis(500));
                    }
                });
    }

    @Test
    void pagesThatStayAreSeen() {
        expect(
                "has its KV cache awake, but",
                new Tampering() {
                    @Override
                    public RankMemory memory(RankMemory memory) {
                        return proxy(
                                RankMemory.class,
                                memory,
                                handler ->
                                        (proxy, method, arguments) ->
                                                method.getName().equals("sleep")
                                                        ? (Object) 0L
                                                        : handler.invoke(proxy, method, arguments));
                    }
                });
    }

    @Test
    void anEngineThatKeepsWhatItIsToldOfIsSeen() {
        expect(
                "never: ",
                halves(
                        UnaryOperator.identity(),
                        worker ->
                                (proxy, method, arguments) -> {
                                    Object result = worker.invoke(proxy, method, arguments);
                                    return result instanceof WorkerReport report
                                            ? withoutSent(report)
                                            : result;
                                }));
    }

    /** Reports a revocation as obeyed at once, and never obeys it. */
    private static final class Liar implements InvocationHandler {
        private final InvocationHandler worker;
        private final Set<String> claimed = new LinkedHashSet<>();

        private Liar(InvocationHandler worker) {
            this.worker = worker;
        }

        @Override
        public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments)
                throws Throwable {
            if (method.getName().equals("start") && arguments != null) {
                ConnectorStep step = (ConnectorStep) arguments[0];
                step.revocations().forEach(revocation -> claimed.add(revocation.id()));
                return worker.invoke(proxy, method, new Object[] {withoutRevocations(step)});
            }
            Object result = worker.invoke(proxy, method, arguments);
            if (result instanceof WorkerReport report) {
                Set<String> revoked = Set.copyOf(claimed);
                claimed.clear();
                return new WorkerReport(
                        report.finishedSending(),
                        report.renewedSending(),
                        report.readUnclaimed(),
                        report.finishedReceiving(),
                        report.failedReceiving(),
                        report.abandonedReceiving(),
                        report.failureReasons(),
                        revoked,
                        report.statistics(),
                        report.children());
            }
            return result;
        }
    }

    private static ConnectorStep withoutRevocations(ConnectorStep step) {
        return new ConnectorStep(
                step.reads(),
                step.inBatch(),
                step.notProcessed(),
                step.leases(),
                step.heartbeats(),
                step.schedulerClockSeconds(),
                step.draining(),
                step.revoked(),
                List.of(),
                step.sideChannelPort(),
                step.push(),
                step.children());
    }

    /** Abandoned reads are reported as ended; that they really end comes as a surprise. */
    private static WorkerReport withoutQuarantine(WorkerReport report) {
        Set<String> finished = new HashSet<>(report.finishedReceiving());
        finished.addAll(report.abandonedReceiving());
        Set<String> failed = new HashSet<>(report.failedReceiving());
        failed.addAll(report.abandonedReceiving());
        return new WorkerReport(
                report.finishedSending(),
                report.renewedSending(),
                report.readUnclaimed(),
                finished,
                failed,
                Set.of(),
                report.failureReasons(),
                report.revoked(),
                report.statistics(),
                report.children());
    }

    /** What a decode engine holds fits every prompt. */
    private static HandOver withoutHashOfTurn(HandOver handOver) {
        KvTransferParams params = handOver.params();
        if (params == null || params.remotePrefill()) {
            return handOver;
        }
        ObjectNode json = params.toJson();
        json.remove("remote_prompt_hash");
        return new HandOver(handOver.holdBlocks(), KvTransferParams.of(json));
    }

    private static WorkerReport withoutSent(WorkerReport report) {
        return new WorkerReport(
                Set.of(),
                report.renewedSending(),
                Set.of(),
                report.finishedReceiving(),
                report.failedReceiving(),
                report.abandonedReceiving(),
                report.failureReasons(),
                report.revoked(),
                report.statistics(),
                report.children());
    }

    /** Engines of one host, which map each other's pages and sleep. */
    private static Setting mapped(Setting drawn) {
        return new Setting(
                Addressing.MAPPED,
                drawn.kvHeads(),
                drawn.engines(),
                drawn.faults(),
                true,
                drawn.events());
    }

    private static void expect(String what, Tampering tampering) {
        Set<String> seen = new LinkedHashSet<>();
        for (long seed = 1; seed <= SEEDS; seed++) {
            try {
                var _ = Simulation.run(seed, tampering);
            } catch (SimulationFailure e) {
                String rule = String.valueOf(e.getCause());
                if (rule.contains(what)) {
                    return;
                }
                seen.add(rule.replaceAll("[0-9]+", "N"));
            }
        }
        assertThat(seen).as("failures of %d worlds", SEEDS).anyMatch(rule -> rule.contains(what));
    }

    private static Tampering halves(
            UnaryOperator<InvocationHandler> scheduler, UnaryOperator<InvocationHandler> worker) {
        return new Tampering() {
            @Override
            public ConnectorHalves halves(ConnectorHalves halves) {
                return new ConnectorHalves(
                        proxy(SchedulerConnector.class, halves.scheduler(), scheduler),
                        halves.workers().stream()
                                .map(half -> proxy(WorkerConnector.class, half, worker))
                                .toList());
            }
        };
    }

    private static <T> T proxy(Class<T> type, T target, UnaryOperator<InvocationHandler> change) {
        InvocationHandler plain =
                (_, method, arguments) -> {
                    try {
                        return method.invoke(target, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                };
        return type.cast(
                Proxy.newProxyInstance(
                        type.getClassLoader(), new Class<?>[] {type}, change.apply(plain)));
    }
}
