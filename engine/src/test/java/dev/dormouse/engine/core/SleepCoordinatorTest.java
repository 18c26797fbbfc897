package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.kv.BlockManager;
import dev.dormouse.memory.MemoryInUseException;
import dev.dormouse.memory.MemoryTag;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * What {@link SleepFailureTest} cannot bring about from outside: a rank whose pages will not go.
 */
final class SleepCoordinatorTest {
    private static final Set<MemoryTag> ALL = Set.of(MemoryTag.WEIGHTS, MemoryTag.KV_CACHE);

    private final FakeConnector connector = new FakeConnector(2);
    private final HashModel model = new HashModel(2);
    private final List<Worker> workers = new ArrayList<>();
    private final SleepCoordinator coordinator;

    SleepCoordinatorTest() {
        EngineConfig config = EngineHarness.roomy();
        RankMemories memories =
                RankMemories.load(
                        model,
                        HashModel.SHAPE,
                        8,
                        MachineMemory.source(true, System::nanoTime, new MemoryFiles()));
        for (int rank = 0; rank < 2; rank++) {
            workers.add(
                    new Worker(
                            rank,
                            model,
                            connector.ranks.get(rank),
                            HashModel.SHAPE,
                            8,
                            memories.get(rank)));
        }
        BlockManager blocks = new BlockManager(8, HashModel.BLOCK_TOKENS, true);
        RemoteKv remote = new RemoteKv(connector.scheduling, blocks);
        Scheduler scheduler = new Scheduler(config, blocks, remote, new Counters());
        coordinator =
                new SleepCoordinator(
                        workers, connector.scheduling, scheduler, () -> {}, System::nanoTime);
        workers.forEach(Worker::open);
        coordinator.publish();
    }

    @AfterEach
    void close() {
        workers.forEach(Worker::close);
    }

    @Test
    void ifOneRanksPagesCannotGoEveryRankIsBroughtBack() {
        connector.calls.clear();
        // Weights that are being loaded are in use, so their pages stay.
        model.onLoad(
                1,
                () ->
                        assertThatThrownBy(
                                        () ->
                                                coordinator.fallAsleep(
                                                        ALL, new PhaseTimes(System::nanoTime)))
                                .isInstanceOf(MemoryInUseException.class));
        workers.get(1).loadWeights();

        assertThat(coordinator.isMapped(MemoryTag.WEIGHTS)).isTrue();
        assertThat(coordinator.isMapped(MemoryTag.KV_CACHE)).isTrue();
        assertThat(model.loads(0)).as("its weights were gone").isEqualTo(2);
        assertThat(model.loads(1)).isEqualTo(2);
        assertThat(connector.calls)
                .containsExactly(
                        "withdraw",
                        "prepare 0",
                        "prepare 1",
                        "release 0",
                        "release 1",
                        "restore 0",
                        "restore 1",
                        "publish 2");
    }
}
