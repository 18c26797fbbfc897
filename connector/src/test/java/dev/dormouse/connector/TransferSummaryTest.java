package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.TransferStatistics.TransferSample;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class TransferSummaryTest {
    /** The figures are numpy's: mean, percentile(90), rounded to three digits. */
    @Test
    void theLineIsVllms() {
        TransferStatistics interval =
                new TransferStatistics(
                        List.of(
                                new TransferSample(0.010, 0.001, 1 << 20, 30),
                                new TransferSample(0.004, 0.0005, 3 << 20, 31),
                                new TransferSample(0.0061234, 0.0007, 2 << 20, 30)),
                        1,
                        10,
                        2,
                        3,
                        99,
                        99,
                        99,
                        4,
                        99,
                        5,
                        99,
                        99,
                        Map.of());
        assertThat(TransferSummary.of(interval))
                .hasToString(
                        "KV Transfer metrics: Num successful transfers=3, Avg xfer time (ms)=6.708,"
                                + " P90 xfer time (ms)=9.225, Avg post time (ms)=0.733, P90 post time (ms)=0.94,"
                                + " Avg MB per transfer=2.0, Throughput (MB/s)=298.16, Avg number of descriptors=30.3,"
                                + " Num failed transfers=16, Num KV expired reqs=14, Num notifs after expiry=5");
    }

    @Test
    void anIntervalWithoutTransfersIsAllZeros() {
        assertThat(TransferSummary.of(TransferStatistics.NONE).toString())
                .contains("Num successful transfers=0, Avg xfer time (ms)=0.0")
                .contains("Throughput (MB/s)=0.0")
                .doesNotContain("NaN");
    }
}
