package dev.dormouse.engine.core;

import dev.dormouse.engine.EngineStatistics;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/** The engine's thread writes figures and durations, any threads read them. */
@Param(name = "seconds", gen = IntGen.class, conf = "1:9")
public final class StatisticsBoardLinearizabilityTest {
    private static final String ENGINE = "the engine's thread";

    private int steps;
    private final StatisticsBoard board =
            new StatisticsBoard(this::snapshot, new TransferLog(() -> 0, _ -> {}));

    @Operation(nonParallelGroup = ENGINE)
    public void step() {
        steps++;
        board.refresh();
    }

    @Operation(nonParallelGroup = ENGINE)
    public void addTransition(@Param(name = "seconds") int seconds) {
        board.addTransition("sleep", seconds);
    }

    @Operation
    public String read() {
        EngineStatistics statistics = board.read();
        return statistics.running() + " " + statistics.transitionSeconds().get("sleep");
    }

    @Test
    void figuresAreOfOneMomentAndNoneIsLost() {
        new ModelCheckingOptions()
                .threads(3)
                .actorsPerThread(2)
                .actorsBefore(1)
                .actorsAfter(1)
                .iterations(5)
                .invocationsPerIteration(100)
                .check(getClass());
    }

    private StatisticsBoard.Snapshot snapshot() {
        return new StatisticsBoard.Snapshot(steps, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
}
