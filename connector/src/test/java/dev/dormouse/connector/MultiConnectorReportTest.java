package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What several connectors tell and are told as one. */
final class MultiConnectorReportTest {
    @Test
    void everyCallIsAnsweredByTheMultiConnectorItself() throws NoSuchMethodException {
        for (Class<?>[] half :
                new Class<?>[][] {
                    {SchedulerConnector.class, MultiScheduler.class},
                    {WorkerConnector.class, MultiWorker.class}
                }) {
            for (Method method : half[0].getMethods()) {
                if (!Modifier.isStatic(method.getModifiers())) {
                    assertThat(
                                    half[1].getMethod(method.getName(), method.getParameterTypes())
                                            .getDeclaringClass())
                            .as(method.toString())
                            .isEqualTo(half[1]);
                }
            }
        }
    }

    @Test
    void reportsAreUnitedAndStatisticsSummed() {
        WorkerConnector worker =
                MultiConnector.worker(
                        List.of(
                                reporting(report("1", statistics(1))),
                                reporting(report("2", statistics(20))),
                                reporting(
                                        new WorkerReport(
                                                Set.of(),
                                                Set.of(),
                                                Set.of(),
                                                TransferStatistics.NONE))),
                        System::nanoTime);

        WorkerReport report = worker.poll();
        assertThat(report.finishedSending()).containsExactlyInAnyOrder("sent1", "sent2");
        assertThat(report.renewedSending()).isEqualTo(Map.of("held1", 5.0, "held2", 5.0));
        assertThat(report.finishedReceiving()).containsExactlyInAnyOrder("bad1", "bad2");
        assertThat(report.failedReceiving()).containsExactlyInAnyOrder("bad1", "bad2");
        assertThat(report.abandonedReceiving()).containsExactlyInAnyOrder("stuck1", "stuck2");
        assertThat(report.failureReasons()).isEqualTo(Map.of("bad1", "gone", "bad2", "gone"));
        assertThat(report.statistics()).isEqualTo(statistics(21));
        assertThat(report.children()).hasSize(3);
    }

    @Test
    void eachPublishesItsOwnPayloadOfEveryRank() {
        ModelWorld world = new ModelWorld();
        List<RankPayload> first = payloads(world, "A");
        List<RankPayload> second = payloads(world, "B");
        List<List<RankPayload>> published = new ArrayList<>();
        SchedulerConnector multi =
                MultiConnector.scheduler(List.of(publishing(published), publishing(published)));

        multi.publish(
                List.of(
                        first.get(0).with(List.of(first.get(0), second.get(0))),
                        first.get(1).with(List.of(first.get(1), second.get(1)))));
        assertThat(published).containsExactly(first, second);
    }

    private static List<RankPayload> payloads(ModelWorld world, String engineId) {
        return world.start(world.config(engineId).tpSize(2)).ranks().stream()
                .map(rank -> rank.worker().payload())
                .toList();
    }

    private static WorkerReport report(String suffix, TransferStatistics statistics) {
        return new WorkerReport(
                Set.of("sent" + suffix),
                Map.of("held" + suffix, 5.0),
                Set.of(),
                Set.of("bad" + suffix),
                Set.of("bad" + suffix),
                Set.of("stuck" + suffix),
                Map.of("bad" + suffix, "gone"),
                Set.of(),
                statistics,
                List.of());
    }

    private static TransferStatistics statistics(long each) {
        return new TransferStatistics(
                List.of(),
                each,
                each,
                each,
                each,
                each,
                each,
                each,
                each,
                each,
                each,
                each,
                each,
                Map.of("x", new RouteStatistics(each, each, each)));
    }

    private static WorkerConnector reporting(WorkerReport report) {
        return only(WorkerConnector.class, "poll", _ -> report);
    }

    @SuppressWarnings("unchecked")
    private static SchedulerConnector publishing(List<List<RankPayload>> published) {
        return only(
                SchedulerConnector.class,
                "publish",
                arguments -> {
                    published.add((List<RankPayload>) arguments[0]);
                    return "";
                });
    }

    private interface Answer {
        Object answer(Object[] arguments);
    }

    /** A half that knows one call. */
    private static <T> T only(Class<T> half, String name, Answer answer) {
        return half.cast(
                Proxy.newProxyInstance(
                        half.getClassLoader(),
                        new Class<?>[] {half},
                        (_, method, arguments) -> {
                            if (!method.getName().equals(name)) {
                                throw new UnsupportedOperationException(method.getName());
                            }
                            Object result = answer.answer(arguments);
                            return method.getReturnType() == void.class ? null : result;
                        }));
    }
}
