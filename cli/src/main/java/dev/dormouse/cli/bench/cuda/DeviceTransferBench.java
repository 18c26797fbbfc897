package dev.dormouse.cli.bench.cuda;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.transport.Registration;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** How fast blocks come from another process's GPU memory, against a plain copy in the reader. */
public final class DeviceTransferBench {
    private static final int SHARES = 3; // the owner's memory, and twice as much of the reader

    private final Progress progress;

    public DeviceTransferBench(Progress progress) {
        this.progress = progress;
    }

    /**
     * A row.
     *
     * @param bytes of all blocks
     * @param blockBytes of each
     * @param bestGigabytesPerSecond of all rounds, 10^9 bytes in a second
     * @param medianGigabytesPerSecond of all rounds
     * @param copyGigabytesPerSecond the best of cuMemcpyDtoD of as much in the reader
     * @param copyMedianGigabytesPerSecond its median
     */
    public record Rate(
            long bytes,
            @JsonProperty("block_bytes") long blockBytes,
            @JsonProperty("best_gb_per_s") double bestGigabytesPerSecond,
            @JsonProperty("median_gb_per_s") double medianGigabytesPerSecond,
            @JsonProperty("copy_gb_per_s") double copyGigabytesPerSecond,
            @JsonProperty("copy_median_gb_per_s") double copyMedianGigabytesPerSecond) {
        /** How much of the copy's best rate the best round reaches. */
        @JsonProperty("ratio")
        public double ratio() {
            return bestGigabytesPerSecond / copyGigabytesPerSecond;
        }

        /** The same of medians. */
        @JsonProperty("median_ratio")
        public double medianRatio() {
            return medianGigabytesPerSecond / copyMedianGigabytesPerSecond;
        }
    }

    /**
     * Measures; sizes that do not fit the device are left out, and it is said so.
     *
     * @throws FleetException if there is no GPU, or a byte was wrong
     */
    public List<Rate> run(List<Long> sizes, List<Long> blockSizes, int rounds) {
        long free = DeviceSide.freeOnDevice();
        List<Long> fitting = fitting(sizes, free);
        long largest = fitting.stream().mapToLong(Long::longValue).max().orElseThrow();
        List<Rate> rates = new ArrayList<>();
        try (DeviceSide side = new DeviceSide(largest);
                ReaderChild reader = ReaderChild.start(2 * largest)) {
            progress.say("filling " + (largest >> 20) + " MiB");
            side.fill(Blocks.shuffled(largest, largest, 1), 1);
            Registration registration = side.transport().register(List.of(side.range()));
            var _ = reader.run(task("load", side, largest, 0, 0));
            for (long bytes : fitting) {
                for (long blockBytes : blockSizes) {
                    if (blockBytes <= bytes) {
                        progress.say(
                                "%d MiB in blocks of %d KiB"
                                        .formatted(bytes >> 20, blockBytes >> 10));
                        rates.add(measure(side, reader, bytes, blockBytes, rounds));
                    }
                }
            }
            DeviceSide.revoke(registration);
            registration.close();
        }
        return rates;
    }

    private List<Long> fitting(List<Long> sizes, long freeBytes) {
        List<Long> fitting =
                sizes.stream()
                        .filter(bytes -> SHARES * bytes <= DeviceSide.usable(freeBytes))
                        .toList();
        sizes.stream()
                .filter(bytes -> !fitting.contains(bytes))
                .forEach(bytes -> progress.say((bytes >> 20) + " MiB do not fit: left out"));
        if (fitting.isEmpty()) {
            throw new FleetException(
                    "no size fits: the GPU has %d MiB free, a size needs %d times as much"
                            .formatted(freeBytes >> 20, SHARES));
        }
        return fitting;
    }

    private static DeviceReader.Task task(
            String kind, DeviceSide side, long bytes, long blockBytes, int rounds) {
        String metadata = kind.equals("load") ? side.metadata() : "";
        return new DeviceReader.Task(
                kind, metadata, side.address(), bytes, blockBytes, rounds, 1, false);
    }

    private static Rate measure(
            DeviceSide side, ReaderChild reader, long bytes, long blockBytes, int rounds) {
        DeviceReader.Answer answer = reader.run(task("measure", side, bytes, blockBytes, rounds));
        var _ = side.transport().messages();
        if (answer.wrongWords() > 0) {
            throw new FleetException(
                    "%d words of %d bytes in blocks of %d are wrong"
                            .formatted(answer.wrongWords(), bytes, blockBytes));
        }
        double[] read = answer.readMillis().clone();
        double[] copy = answer.copyMillis().clone();
        Arrays.sort(read);
        Arrays.sort(copy);
        return new Rate(
                bytes,
                blockBytes,
                bytes / read[0] / 1e6,
                bytes / read[rounds / 2] / 1e6,
                bytes / copy[0] / 1e6,
                bytes / copy[rounds / 2] / 1e6);
    }

    /** Prints a table. */
    public static void print(List<Rate> rates, PrintWriter out) {
        out.printf(
                "%8s %8s %9s %9s %9s %7s %7s%n",
                "size", "block", "best", "median", "memcpy", "ratio", "median");
        out.printf(
                "%8s %8s %9s %9s %9s %7s %7s%n",
                "MiB", "KiB", "GB/s", "GB/s", "GB/s", "best", "ratio");
        for (Rate rate : rates) {
            out.printf(
                    Locale.ROOT,
                    "%8d %8d %9.1f %9.1f %9.1f %7.2f %7.2f%n",
                    rate.bytes() >> 20,
                    rate.blockBytes() >> 10,
                    rate.bestGigabytesPerSecond(),
                    rate.medianGigabytesPerSecond(),
                    rate.copyGigabytesPerSecond(),
                    rate.ratio(),
                    rate.medianRatio());
        }
        out.flush();
    }
}
