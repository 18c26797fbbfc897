package dev.dormouse.cli.bench.cuda;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.cuda.CudaDevice;
import dev.dormouse.foreign.NativeLibraryException;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * How fast blocks come from another process's GPU memory, by transport and the reader's GPU,
 * against a plain copy in the reader.
 */
public final class DeviceTransferBench {
    private static final int SHARES = 3; // the owner's memory, and twice as much of the reader

    /** NIXL's reads of such memory are so slow that more would take minutes. */
    private static final long NIXL_BYTES = 64L << 20;

    private final Progress progress;

    public DeviceTransferBench(Progress progress) {
        this.progress = progress;
    }

    /**
     * What is to be measured.
     *
     * @param transports of {@code local} and {@code nixl}
     * @param readerDevices GPUs on which a reader runs; the owner's is 0
     */
    public record Plan(
            List<String> transports,
            List<Integer> readerDevices,
            List<Long> sizes,
            List<Long> blockSizes,
            int rounds) {
        /** Copies the lists. */
        public Plan {
            transports = List.copyOf(transports);
            readerDevices = List.copyOf(readerDevices);
            sizes = List.copyOf(sizes);
            blockSizes = List.copyOf(blockSizes);
        }
    }

    /**
     * What was measured.
     *
     * @param notes what a reader of the rates must know
     */
    public record Report(List<Rate> rates, List<String> notes) {}

    /**
     * A row.
     *
     * @param transport that moved the blocks
     * @param readerDevice the GPU to which they went
     * @param limit the driver's function that the copy is made by
     * @param bytes of all blocks
     * @param blockBytes of each
     * @param bestGigabytesPerSecond of all rounds, 10^9 bytes in a second
     * @param medianGigabytesPerSecond of all rounds
     * @param copyGigabytesPerSecond the best of plain copies of as much in the reader, in the same
     *     run
     * @param copyMedianGigabytesPerSecond its median
     */
    public record Rate(
            String transport,
            @JsonProperty("reader_device") int readerDevice,
            String limit,
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

    /** The GPUs that readers run on if nobody says: the owner's, and the next that reaches it. */
    public static List<Integer> readerDevices() {
        List<CudaDevice> devices = DeviceSide.devices();
        CudaDevice owner = devices.get(DeviceSide.OWNER_DEVICE);
        return Stream.concat(
                        Stream.of(owner.ordinal()),
                        devices.stream()
                                .skip(1)
                                .filter(device -> device.canAccess(owner))
                                .map(CudaDevice::ordinal)
                                .limit(1))
                .toList();
    }

    /**
     * Measures; sizes that do not fit the device are left out, and it is said so.
     *
     * @throws FleetException if there is no GPU, or a byte was wrong
     */
    public Report run(Plan plan) {
        int devices = DeviceSide.devices().size();
        plan.readerDevices()
                .forEach(
                        device -> {
                            if (device < 0 || device >= devices) {
                                throw new FleetException(
                                        "no GPU %d: there are %d".formatted(device, devices));
                            }
                        });
        List<Long> fitting = fitting(plan);
        long largest = fitting.stream().mapToLong(Long::longValue).max().orElseThrow();
        List<Rate> rates = new ArrayList<>();
        List<String> notes = new ArrayList<>();
        List<String> wrong = new ArrayList<>();
        try (DeviceSide side = new DeviceSide(largest, DeviceSide.OWNER_DEVICE)) {
            progress.say("filling " + (largest >> 20) + " MiB");
            side.fill(Blocks.shuffled(largest, largest, 1), 1);
            for (String transport : List.of(DeviceSide.LOCAL, DeviceSide.NIXL)) {
                if (!plan.transports().contains(transport)) {
                    continue;
                }
                List<Long> sizes = sizes(transport, fitting, notes);
                try {
                    measure(side, transport, sizes, plan, rates, wrong);
                } catch (NativeLibraryException | TransportException | FleetException e) {
                    if (transport.equals(DeviceSide.LOCAL)) {
                        throw e;
                    }
                    notes.add("nixl could not be measured: " + e.getMessage()); // local ones stand
                }
            }
        }
        if (!wrong.isEmpty()) {
            throw new FleetException(String.join("; ", wrong));
        }
        compare(rates, notes);
        return new Report(rates, notes);
    }

    /** All of local's; of NIXL's the small ones, or a small one. */
    private static List<Long> sizes(String transport, List<Long> fitting, List<String> notes) {
        if (transport.equals(DeviceSide.LOCAL)) {
            return fitting;
        }
        List<Long> small = fitting.stream().filter(bytes -> bytes <= NIXL_BYTES).toList();
        notes.add(
                "nixl is measured up to %d MiB: UCX cannot open handles of memory that can be unmapped and emulates reads in software over tcp; --kv-transport auto or local avoids that on one host"
                        .formatted(NIXL_BYTES >> 20));
        return small.isEmpty() ? List.of(NIXL_BYTES) : small;
    }

    private void measure(
            DeviceSide side,
            String transport,
            List<Long> sizes,
            Plan plan,
            List<Rate> rates,
            List<String> wrong) {
        Registration registration = side.transport(transport).register(List.of(side.range()));
        long readerBytes = 2 * sizes.stream().mapToLong(Long::longValue).max().orElseThrow();
        for (int device : plan.readerDevices()) {
            try (ReaderChild reader = ReaderChild.start(readerBytes, device)) {
                Reading reading = new Reading(side, reader, transport, device);
                reading.load();
                for (long bytes : sizes) {
                    for (long blockBytes : plan.blockSizes()) {
                        if (blockBytes <= bytes) {
                            progress.say(
                                    "%s, GPU %d: %d MiB in blocks of %d KiB"
                                            .formatted(
                                                    transport,
                                                    device,
                                                    bytes >> 20,
                                                    blockBytes >> 10));
                            rates.add(reading.measure(bytes, blockBytes, plan.rounds(), wrong));
                        }
                    }
                }
            }
        }
        DeviceSide.revoke(registration);
        registration.close();
    }

    /** How much faster the one is, where both were measured. */
    private static void compare(List<Rate> rates, List<String> notes) {
        for (Rate slow : rates) {
            for (Rate fast : rates) {
                if (slow.transport().equals(DeviceSide.NIXL)
                        && fast.transport().equals(DeviceSide.LOCAL)
                        && slow.readerDevice() == fast.readerDevice()
                        && slow.bytes() == fast.bytes()
                        && slow.blockBytes() == fast.blockBytes()) {
                    notes.add(
                            String.format(
                                    Locale.ROOT,
                                    "GPU %d, %d MiB in blocks of %d KiB: local moves %.1f GB/s, nixl %.2f: %.0f times as much",
                                    slow.readerDevice(),
                                    slow.bytes() >> 20,
                                    slow.blockBytes() >> 10,
                                    fast.bestGigabytesPerSecond(),
                                    slow.bestGigabytesPerSecond(),
                                    fast.bestGigabytesPerSecond() / slow.bestGigabytesPerSecond()));
                }
            }
        }
    }

    private List<Long> fitting(Plan plan) {
        long freeBytes =
                Stream.concat(Stream.of(DeviceSide.OWNER_DEVICE), plan.readerDevices().stream())
                        .mapToLong(DeviceSide::freeOn)
                        .min()
                        .orElseThrow();
        List<Long> sizes = plan.sizes();
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

    /** A reader of a transport's. */
    private record Reading(DeviceSide side, ReaderChild reader, String transport, int device) {
        void load() {
            long bytes = side.range().lengthBytes();
            var _ = reader.run(task("load", side.metadata(transport), bytes, 0, 0));
        }

        private DeviceReader.Task task(
                String kind, String metadata, long bytes, long blockBytes, int rounds) {
            return new DeviceReader.Task(
                    kind, transport, metadata, side.address(), bytes, blockBytes, rounds, 1, false);
        }

        Rate measure(long bytes, long blockBytes, int rounds, List<String> wrong) {
            DeviceReader.Answer answer = reader.run(task("measure", "", bytes, blockBytes, rounds));
            var _ = side.transport(transport).messages();
            if (answer.wrongWords() > 0) {
                wrong.add( // unlike a transport that fails, never only noted
                        "%s: %d words of %d bytes in blocks of %d are wrong"
                                .formatted(transport, answer.wrongWords(), bytes, blockBytes));
            }
            double[] read = answer.readMillis().clone();
            double[] copy = answer.copyMillis().clone();
            Arrays.sort(read);
            Arrays.sort(copy);
            return new Rate(
                    transport,
                    device,
                    DeviceSide.limit(device),
                    bytes,
                    blockBytes,
                    bytes / read[0] / 1e6,
                    bytes / read[read.length / 2] / 1e6,
                    bytes / copy[0] / 1e6,
                    bytes / copy[copy.length / 2] / 1e6);
        }
    }

    /** Prints a table. */
    public static void print(Report report, PrintWriter out) {
        out.printf(
                "%-9s %3s %8s %8s %9s %9s %9s %7s %7s  %s%n",
                "transport",
                "GPU",
                "size",
                "block",
                "best",
                "median",
                "limit",
                "ratio",
                "median",
                "limit is");
        out.printf(
                "%-9s %3s %8s %8s %9s %9s %9s %7s %7s%n",
                "", "", "MiB", "KiB", "GB/s", "GB/s", "GB/s", "best", "ratio");
        for (Rate rate : report.rates()) {
            out.printf(
                    Locale.ROOT,
                    "%-9s %3d %8d %8d %9.2f %9.2f %9.2f %7.4f %7.4f  %s%n",
                    rate.transport(),
                    rate.readerDevice(),
                    rate.bytes() >> 20,
                    rate.blockBytes() >> 10,
                    rate.bestGigabytesPerSecond(),
                    rate.medianGigabytesPerSecond(),
                    rate.copyGigabytesPerSecond(),
                    rate.ratio(),
                    rate.medianRatio(),
                    rate.limit());
        }
        report.notes().forEach(note -> out.println("note: " + note));
        out.flush();
    }
}
