package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.TransferStatistics.TransferSample;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.Histogram;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

final class StatisticsBoardTest {
    private static final int MANY = 25_000;

    private final StatisticsBoard board =
            new StatisticsBoard(
                    () ->
                            new StatisticsBoard.Snapshot(
                                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                    new TransferLog(() -> 0, _ -> {}));

    /** Nobody may have scraped for long, and several may scrape. */
    @Test
    void noTransferIsLostHoweverManyComeBeforeSomebodyAsks() {
        for (int i = 0; i < MANY; i++) {
            board.add(
                    TransferStatistics.NONE.withTransfers(
                            List.of(new TransferSample(0.3, 0.002, 2_048, 20_000))));
        }
        for (int reader = 0; reader < 2; reader++) {
            EngineStatistics.Transfers transfers = board.read().transferSizes();
            assertThat(inBucket(transfers.seconds(), .3)).isEqualTo(MANY);
            assertThat(inBucket(transfers.postSeconds(), .005)).isEqualTo(MANY);
            assertThat(inBucket(transfers.bytes(), 2_048)).isEqualTo(MANY);
            assertThat(inBucket(transfers.descriptors(), 20_000)).isEqualTo(MANY);
            assertThat(transfers.bytes().sum()).isEqualTo(2_048.0 * MANY);
        }
        assertThat(board.read().transfers().transfers()).as("only counts are kept").isEmpty();
    }

    @Test
    void bucketsAreVllms() {
        EngineStatistics.Transfers transfers = board.read().transferSizes();
        assertThat(transfers.seconds().upperBounds())
                .containsExactly(.005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1.0, 5.0);
        assertThat(transfers.postSeconds().upperBounds())
                .containsExactly(.001, .005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1.0, 5.0);
        assertThat(transfers.bytes().upperBounds())
                .containsExactly(
                        2048.0,
                        8192.0,
                        32768.0,
                        131072.0,
                        524288.0,
                        2097152.0,
                        8388608.0,
                        33554432.0,
                        134217728.0,
                        536870912.0,
                        2147483648.0,
                        8589934592.0);
        assertThat(transfers.descriptors().upperBounds())
                .extracting(Double::intValue)
                .containsExactly(
                        10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000);
        for (Histogram seconds : board.read().transitionSeconds().values()) {
            assertThat(seconds.upperBounds())
                    .containsExactly(.01, .1, 1.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0);
        }
    }

    @Test
    void everyTransitionStaysCounted() {
        assertThat(board.read().transitionSeconds().keySet())
                .containsExactlyInAnyOrderElementsOf(EngineStatistics.TRANSITIONS);
        for (int i = 0; i < MANY; i++) {
            board.addTransition("wake", 10);
        }
        board.addTransition("sleep", 601);
        EngineStatistics statistics = board.read();
        assertThat(inBucket(histogram(statistics, "wake"), 10)).isEqualTo(MANY);
        assertThat(histogram(statistics, "sleep").counts().getLast()).isEqualTo(1);
        assertThat(histogram(statistics, "release_kv_cache_memory").count()).isZero();
    }

    private static Histogram histogram(EngineStatistics statistics, String operation) {
        return Objects.requireNonNull(statistics.transitionSeconds().get(operation));
    }

    private static long inBucket(Histogram histogram, double upperBound) {
        return histogram.counts().get(histogram.upperBounds().indexOf(upperBound));
    }
}
