package dev.dormouse.cli.bench.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.cuda.Nvrtc;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.testkit.CudaDrivers;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Both benchmarks with little memory, on the machine's GPU or a stand-in. */
class DeviceBenchTest {
    private static final long MIB = 1 << 20;

    private final Progress quiet = new Progress(new PrintStream(OutputStream.nullOutputStream()));
    private final StringWriter out = new StringWriter();

    DeviceBenchTest() {
        CudaDrivers.requireAny();
        try {
            var _ = Nvrtc.load();
        } catch (NativeLibraryException e) {
            if ("1".equals(System.getenv("DORMOUSE_REQUIRE_CUDA"))) {
                Assertions.fail(e);
            }
            Assumptions.abort(e.toString());
        }
    }

    @Test
    void ratesAreOfReadsThatWereRight() {
        List<DeviceTransferBench.Rate> rates =
                new DeviceTransferBench(quiet)
                        .run(List.of(4 * MIB, 1L << 50), List.of(64L << 10, 256L << 10), 3);

        assertThat(rates)
                .extracting(DeviceTransferBench.Rate::blockBytes)
                .containsExactly(64L << 10, 256L << 10);
        assertThat(rates).allSatisfy(rate -> assertThat(rate.ratio()).isPositive());
        DeviceTransferBench.print(rates, new PrintWriter(out));
        assertThat(out.toString().lines()).hasSize(4);
    }

    @Test
    void aSizeThatDoesNotFitIsRefused() {
        assertThatThrownBy(
                        () ->
                                new DeviceTransferBench(quiet)
                                        .run(List.of(1L << 50), List.of(1L << 20), 1))
                .isInstanceOf(FleetException.class)
                .hasMessageContaining("no size fits");
    }

    @Test
    void sleepGivesAllBytesBackWhileTheReaderIsConnected() {
        List<DeviceSleepBench.Sleep> sleeps =
                new DeviceSleepBench(quiet).run(List.of(8 * MIB, 1L << 50));

        assertThat(sleeps)
                .hasSize(3)
                .allSatisfy(
                        sleep -> {
                            assertThat(sleep.returnedBytes()).isGreaterThanOrEqualTo(8 * MIB);
                            assertThat(sleep.firstMillis()).isGreaterThan(sleep.loadMillis());
                        });
        DeviceSleepBench.print(sleeps, new PrintWriter(out));
        assertThat(out.toString().lines()).hasSize(5);
    }

    @Test
    void cyclesLeaveNothingBehind() {
        DeviceSleepBench.Cycles cycles = new DeviceSleepBench(quiet).cycles(5, 8 * MIB);

        assertThat(cycles.ownerDescriptors()).isZero();
        assertThat(cycles.readerDescriptors()).isZero();
        assertThat(cycles.freeBytes()).isZero();
        DeviceSleepBench.print(cycles, new PrintWriter(out));
        assertThat(out.toString()).startsWith("5 cycles: every byte right");
    }
}
