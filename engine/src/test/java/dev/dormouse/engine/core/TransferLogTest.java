package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.TransferStatistics.TransferSample;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class TransferLogTest {
    private final List<String> lines = new ArrayList<>();
    private long nanos;
    private final TransferLog log = new TransferLog(() -> nanos, lines::add);

    private static TransferStatistics oneTransfer() {
        return TransferStatistics.NONE.withTransfers(
                List.of(new TransferSample(0.01, 0.001, 1 << 20, 30)));
    }

    private void pass(Duration time) {
        nanos += time.toNanos();
        log.flush();
    }

    @Test
    void aLineSumsUpTenSeconds() {
        log.add(oneTransfer());
        pass(Duration.ofSeconds(9));
        log.add(oneTransfer());
        assertThat(lines).isEmpty();
        pass(Duration.ofSeconds(1));
        assertThat(lines)
                .singleElement()
                .asString()
                .startsWith("KV Transfer metrics: Num successful transfers=2, ");
    }

    @Test
    void manyTransfersAreSaidBeforeTheirTimeAndNoneIsLost() {
        for (int i = 0; i < 5_000; i++) {
            log.add(oneTransfer().plus(oneTransfer()).plus(oneTransfer()));
        }
        pass(Duration.ofSeconds(10));
        assertThat(lines)
                .satisfiesExactly(
                        first -> assertThat(first).contains("Num successful transfers=10000, "),
                        rest -> assertThat(rest).contains("Num successful transfers=5000, "));
    }

    @Test
    void countsWithoutTransfersAreSaid() {
        log.add(new TransferStatistics(List.of(), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Map.of()));
        pass(Duration.ofSeconds(10));
        assertThat(lines).singleElement().asString().contains("Num failed transfers=1,");
    }

    @Test
    void nothingIsSaidWhereNothingHappened() {
        log.add(TransferStatistics.NONE);
        pass(Duration.ofHours(1));
        log.add(oneTransfer());
        pass(Duration.ofSeconds(10));
        pass(Duration.ofHours(1));
        assertThat(lines).hasSize(1);
    }

    @Test
    void aRegistrationIsNoTransfer() {
        log.add(new TransferStatistics(List.of(), 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, Map.of()));
        pass(Duration.ofSeconds(10));
        assertThat(lines).isEmpty();
        log.add(new TransferStatistics(List.of(), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, Map.of()));
        pass(Duration.ofSeconds(10));
        assertThat(lines).singleElement().asString().contains("Num KV expired reqs=1");
    }
}
