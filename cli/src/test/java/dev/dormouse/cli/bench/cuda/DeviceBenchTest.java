package dev.dormouse.cli.bench.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.cuda.Nvrtc;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
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
        DeviceTransferBench.Report report =
                new DeviceTransferBench(quiet)
                        .run(
                                plan(
                                        List.of("local"),
                                        List.of(0),
                                        List.of(4 * MIB, 1L << 50),
                                        List.of(64L << 10, 256L << 10)));

        assertThat(report.rates())
                .extracting(DeviceTransferBench.Rate::blockBytes)
                .containsExactly(64L << 10, 256L << 10);
        assertThat(report.rates())
                .allSatisfy(
                        rate -> {
                            assertThat(rate.ratio()).isPositive();
                            assertThat(rate.limit()).isEqualTo("cuMemcpyDtoD");
                        });
        assertThat(report.notes()).isEmpty();
        DeviceTransferBench.print(report, new PrintWriter(out));
        assertThat(out.toString().lines()).hasSize(4);
    }

    @Test
    void aSizeThatDoesNotFitIsRefused() {
        assertThatThrownBy(
                        () ->
                                new DeviceTransferBench(quiet)
                                        .run(
                                                plan(
                                                        List.of("local"),
                                                        List.of(0),
                                                        List.of(1L << 50),
                                                        List.of(1L << 20))))
                .isInstanceOf(FleetException.class)
                .hasMessageContaining("no size fits");
    }

    @Test
    void aReaderOnAnotherGpuIsHeldAgainstThePeerCopy() throws IOException {
        CudaDrivers.standIn().pair(true);
        try {
            assertThat(DeviceTransferBench.readerDevices()).containsExactly(0, 1);
            DeviceTransferBench.Report report =
                    new DeviceTransferBench(quiet)
                            .run(
                                    plan(
                                            List.of("local"),
                                            List.of(1),
                                            List.of(4 * MIB),
                                            List.of(64L << 10)));

            assertThat(report.rates())
                    .singleElement()
                    .satisfies(
                            rate -> {
                                assertThat(rate.readerDevice()).isEqualTo(1);
                                assertThat(rate.limit()).isEqualTo("cuMemcpyPeer");
                            });
        } finally {
            CudaDrivers.standIn().pair(false);
        }
        assertThat(DeviceTransferBench.readerDevices()).containsExactly(0);
        assertThatThrownBy(
                        () ->
                                new DeviceTransferBench(quiet)
                                        .run(
                                                plan(
                                                        List.of("local"),
                                                        List.of(1),
                                                        List.of(4 * MIB),
                                                        List.of(64L << 10))))
                .hasMessage("no GPU 1: there are 1");
    }

    /** UCX takes the stand-in's memory for the host's, and refuses; on a GPU it moves it. */
    @Test
    void nixlIsMeasuredBesideOrSaidToBeImpossible() {
        Natives.nixlDirectory();
        DeviceTransferBench.Report report =
                new DeviceTransferBench(quiet)
                        .run(
                                plan(
                                        List.of("local", "nixl"),
                                        List.of(0),
                                        List.of(4 * MIB, 128 * MIB),
                                        List.of(256L << 10)));

        assertThat(report.rates()).filteredOn(rate -> rate.transport().equals("local")).hasSize(2);
        assertThat(report.notes().getFirst()).startsWith("nixl is measured up to 64 MiB: UCX");
        long nixl = report.rates().stream().filter(rate -> rate.transport().equals("nixl")).count();
        assertThat(report.notes().getLast())
                .startsWith(
                        nixl == 1
                                ? "GPU 0, 4 MiB in blocks of 256 KiB: local moves"
                                : "nixl could not be measured: register memory failed");
    }

    private static DeviceTransferBench.Plan plan(
            List<String> transports, List<Integer> readers, List<Long> sizes, List<Long> blocks) {
        return new DeviceTransferBench.Plan(transports, readers, sizes, blocks, 3);
    }

    @Test
    void contentKeptOnTheHostIsTimedAgainstPlainCopies() {
        List<DeviceKeepBench.Kept> kept =
                new DeviceKeepBench(quiet).run(List.of(8 * MIB, 1L << 50));

        assertThat(kept)
                .hasSize(3)
                .allSatisfy(
                        row -> {
                            assertThat(row.bytes()).isEqualTo(8 * MIB);
                            assertThat(row.sleepRatio()).isPositive();
                            assertThat(row.wakeRatio()).isPositive();
                        });
        DeviceKeepBench.print(kept, new PrintWriter(out));
        assertThat(out.toString().lines()).hasSize(5);
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
