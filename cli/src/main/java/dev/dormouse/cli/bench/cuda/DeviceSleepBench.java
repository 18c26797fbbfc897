package dev.dormouse.cli.bench.cuda;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.memory.DeviceMemory;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.Retention;
import dev.dormouse.transport.Registration;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** What a sleep of GPU memory takes and gives back while another process has it mapped. */
public final class DeviceSleepBench {
    private static final long CYCLE_BYTES = 1L << 30;
    private static final long READ_BYTES = 64L << 20;

    private static final int ROUNDS = 4; // the first warms up
    private static final Set<MemoryTag> TAGS = Set.of(DeviceSide.TAG);

    private final Progress progress;

    public DeviceSleepBench(Progress progress) {
        this.progress = progress;
    }

    /**
     * One sleep and wake.
     *
     * @param bytes that slept
     * @param pieceBytes of each piece of physical memory
     * @param returnedBytes the device had more by the driver's count, the reader still connected
     * @param readMillis the median read of 64 MiB before the sleep
     * @param firstMillis the first read of the same after the wake, with the load before it
     */
    public record Sleep(
            long bytes,
            @JsonProperty("piece_bytes") long pieceBytes,
            @JsonProperty("revoke_ms") double revokeMillis,
            @JsonProperty("deregister_ms") double deregisterMillis,
            @JsonProperty("unmap_ms") double unmapMillis,
            @JsonProperty("returned_bytes") long returnedBytes,
            @JsonProperty("map_ms") double mapMillis,
            @JsonProperty("register_ms") double registerMillis,
            @JsonProperty("read_ms") double readMillis,
            @JsonProperty("load_ms") double loadMillis,
            @JsonProperty("first_ms") double firstMillis) {
        /** From the order to sleep to the memory's return. */
        @JsonProperty("sleep_ms")
        public double sleepMillis() {
            return revokeMillis + deregisterMillis + unmapMillis;
        }
    }

    /**
     * Many sleeps of 1 GiB, after each of which every byte was compared.
     *
     * @param ownerDescriptors growth of the owner's open files
     * @param readerDescriptors growth of the reader's
     * @param freeBytes growth of what the device could give while the owner sleeps
     */
    public record Cycles(
            int cycles,
            @JsonProperty("median_sleep_ms") double medianSleepMillis,
            @JsonProperty("slowest_sleep_ms") double slowestSleepMillis,
            @JsonProperty("median_first_ms") double medianFirstMillis,
            @JsonProperty("owner_descriptors") long ownerDescriptors,
            @JsonProperty("reader_descriptors") long readerDescriptors,
            @JsonProperty("free_bytes") long freeBytes) {}

    /**
     * Sleeps of several sizes; those that do not fit the device are left out, and it is said so.
     *
     * @throws FleetException if there is no GPU, a byte was wrong, or memory did not come back
     */
    public List<Sleep> run(List<Long> sizes) {
        long free = DeviceSide.freeOn(DeviceSide.OWNER_DEVICE);
        List<Sleep> sleeps = new ArrayList<>();
        for (long bytes : sizes) {
            if (bytes + READ_BYTES > DeviceSide.usable(free)) {
                progress.say((bytes >> 20) + " MiB do not fit: left out");
                continue;
            }
            progress.say((bytes >> 20) + " MiB");
            try (DeviceSide side = new DeviceSide(bytes, DeviceSide.OWNER_DEVICE);
                    ReaderChild reader = ReaderChild.start(READ_BYTES)) {
                Owner owner = new Owner(side, reader, bytes, false);
                for (int round = 0; round < ROUNDS; round++) {
                    Sleep sleep = owner.cycle(round);
                    if (round > 0) {
                        sleeps.add(sleep);
                    }
                }
                owner.close();
            }
        }
        return sleeps;
    }

    /** Many cycles; a tenth more warm up. */
    public Cycles cycles(int cycles, long bytes) {
        try (DeviceSide side = new DeviceSide(bytes, DeviceSide.OWNER_DEVICE);
                ReaderChild reader = ReaderChild.start(bytes)) {
            Owner owner = new Owner(side, reader, bytes, true);
            long self = ProcessHandle.current().pid();
            int warmUp = Math.max(3, cycles / 10);
            for (int i = 0; i < warmUp; i++) {
                var _ = owner.cycle(i);
            }
            long ownerBefore = ReaderChild.descriptors(self);
            long readerBefore = reader.descriptors();
            long freeBefore = owner.freeAsleep;
            double[] sleeps = new double[cycles];
            double[] firsts = new double[cycles];
            for (int i = 0; i < cycles; i++) {
                Sleep sleep = owner.cycle(warmUp + i);
                sleeps[i] = sleep.sleepMillis();
                firsts[i] = sleep.firstMillis();
                if ((i + 1) % 100 == 0) {
                    progress.say((i + 1) + " of " + cycles + " cycles, all bytes right");
                }
            }
            Arrays.sort(sleeps);
            Arrays.sort(firsts);
            Cycles result =
                    new Cycles(
                            cycles,
                            sleeps[cycles / 2],
                            sleeps[cycles - 1],
                            firsts[cycles / 2],
                            ReaderChild.descriptors(self) - ownerBefore,
                            reader.descriptors() - readerBefore,
                            owner.freeAsleep - freeBefore);
            owner.close();
            return result;
        }
    }

    /** As {@link #cycles(int, long)}, of 1 GiB. */
    public Cycles cycles(int cycles) {
        return cycles(cycles, CYCLE_BYTES);
    }

    /** Memory that sleeps and wakes under a reader. */
    private static final class Owner {
        private final DeviceSide side;
        private final ReaderChild reader;
        private final long bytes;
        private final boolean all;
        private final Blocks blocks;
        private Registration registration;
        private long freeAsleep;

        Owner(DeviceSide side, ReaderChild reader, long bytes, boolean all) {
            this.side = side;
            this.reader = reader;
            this.bytes = bytes;
            this.all = all;
            blocks = task("check", 0, "").blocks();
            registration = side.transport().register(List.of(side.range()));
            side.fill(blocks, -1);
            var _ = reader.run(task("load", 0, side.metadata(DeviceSide.LOCAL)));
        }

        private DeviceReader.Task task(String kind, long salt, String metadata) {
            return new DeviceReader.Task(
                    kind, DeviceSide.LOCAL, metadata, side.address(), bytes, 0, 0, salt, all);
        }

        /** Reads, sleeps, wakes with other content, reads and compares. */
        Sleep cycle(int number) {
            double[] reads = reader.run(task("read", 0, "")).readMillis().clone();
            Arrays.sort(reads);
            long freeAwake = side.freeBytes();
            long start = System.nanoTime();
            DeviceSide.revoke(registration);
            long revoked = System.nanoTime();
            registration.close();
            long deregistered = System.nanoTime();
            var _ = side.memory().sleep(TAGS, Retention.DISCARD);
            long unmapped = System.nanoTime();
            freeAsleep = side.freeBytes();
            long returned = freeAsleep - freeAwake;
            if (returned < bytes) {
                throw new FleetException(
                        "the device got %d of %d bytes back".formatted(returned, bytes));
            }
            long waking = System.nanoTime();
            var _ = side.memory().wake(TAGS);
            long woken = System.nanoTime();
            side.fill(blocks, number);
            long filled = System.nanoTime();
            registration = side.transport().register(List.of(side.range()));
            long registered = System.nanoTime();
            DeviceReader.Answer first =
                    reader.run(task("first", number, side.metadata(DeviceSide.LOCAL)));
            requireRight(reader.run(task("check", number, "")));
            var _ = side.transport().messages();
            return new Sleep(
                    bytes,
                    Math.min(bytes, DeviceMemory.advisedPieceBytes(bytes)),
                    (revoked - start) / 1e6,
                    (deregistered - revoked) / 1e6,
                    (unmapped - deregistered) / 1e6,
                    returned,
                    (woken - waking) / 1e6,
                    (registered - filled) / 1e6,
                    reads[reads.length / 2],
                    first.loadMillis(),
                    first.loadMillis() + first.readMillis()[0]);
        }

        private static void requireRight(DeviceReader.Answer answer) {
            if (answer.wrongWords() > 0) {
                throw new FleetException(answer.wrongWords() + " words are wrong after a wake");
            }
        }

        void close() {
            DeviceSide.revoke(registration);
            registration.close();
        }
    }

    /** Prints a table. */
    public static void print(List<Sleep> sleeps, PrintWriter out) {
        out.printf(
                "%7s %7s %8s %8s %8s %8s %9s %8s %8s %8s %8s %8s %8s%n",
                "size",
                "piece",
                "revoke",
                "deregis",
                "unmap",
                "sleep",
                "returned",
                "map",
                "register",
                "read",
                "load",
                "first",
                "more");
        out.printf(
                "%7s %7s %8s %8s %8s %8s %9s %8s %8s %8s %8s %8s %8s%n",
                "MiB", "MiB", "ms", "ms", "ms", "ms", "MiB", "ms", "ms", "ms", "ms", "ms", "ms");
        for (Sleep sleep : sleeps) {
            out.printf(
                    Locale.ROOT,
                    "%7d %7d %8.2f %8.2f %8.2f %8.2f %9d %8.2f %8.2f %8.3f %8.2f %8.2f %8.2f%n",
                    sleep.bytes() >> 20,
                    sleep.pieceBytes() >> 20,
                    sleep.revokeMillis(),
                    sleep.deregisterMillis(),
                    sleep.unmapMillis(),
                    sleep.sleepMillis(),
                    sleep.returnedBytes() >> 20,
                    sleep.mapMillis(),
                    sleep.registerMillis(),
                    sleep.readMillis(),
                    sleep.loadMillis(),
                    sleep.firstMillis(),
                    sleep.firstMillis() - sleep.readMillis());
        }
        out.flush();
    }

    /** Prints a summary. */
    public static void print(Cycles cycles, PrintWriter out) {
        out.printf(
                Locale.ROOT,
                "%d cycles: every byte right; sleep median %.2f ms, slowest %.2f ms; first read median %.2f ms; growth: owner %d descriptors, reader %d, free memory %d bytes%n",
                cycles.cycles(),
                cycles.medianSleepMillis(),
                cycles.slowestSleepMillis(),
                cycles.medianFirstMillis(),
                cycles.ownerDescriptors(),
                cycles.readerDescriptors(),
                cycles.freeBytes());
        out.flush();
    }
}
