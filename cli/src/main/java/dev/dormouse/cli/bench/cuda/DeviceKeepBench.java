package dev.dormouse.cli.bench.cuda;

import com.fasterxml.jackson.annotation.JsonProperty;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import dev.dormouse.memory.DeviceMemory;
import dev.dormouse.memory.MemoryException;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.Retention;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * A sleep that keeps the content on the host (level 1, of weights) and the wake that brings it
 * back, against plain copies of as much between the GPU and memory that is pinned already: what the
 * bus gives.
 */
public final class DeviceKeepBench {
    private static final int ROUNDS = 3;
    private static final Set<MemoryTag> TAGS = Set.of(DeviceSide.TAG);

    private final Progress progress;

    public DeviceKeepBench(Progress progress) {
        this.progress = progress;
    }

    /**
     * One sleep and wake, after which every byte was compared.
     *
     * @param bytes that slept
     * @param sleepMillis from the order to the memory's return, the host's memory made meanwhile
     * @param wakeMillis from the order to the content's being there again, the host's memory given
     *     back
     * @param toHostMillis of the plain copy out
     * @param toDeviceMillis of the plain copy in
     * @param newHostGigabytesPerSecond at which the host gives new memory to as many threads as a
     *     sleep has, 10^9 bytes in a second
     * @param hostReadGigabytesPerSecond at which those threads copy from it
     */
    public record Kept(
            long bytes,
            @JsonProperty("sleep_ms") double sleepMillis,
            @JsonProperty("wake_ms") double wakeMillis,
            @JsonProperty("copy_to_host_ms") double toHostMillis,
            @JsonProperty("copy_to_device_ms") double toDeviceMillis,
            @JsonProperty("new_host_memory_gb_per_s") double newHostGigabytesPerSecond,
            @JsonProperty("host_read_gb_per_s") double hostReadGigabytesPerSecond) {
        /** 10^9 bytes in a second. */
        @JsonProperty("sleep_gb_per_s")
        public double sleepGigabytesPerSecond() {
            return bytes / sleepMillis / 1e6;
        }

        /** 10^9 bytes in a second. */
        @JsonProperty("wake_gb_per_s")
        public double wakeGigabytesPerSecond() {
            return bytes / wakeMillis / 1e6;
        }

        /** 10^9 bytes in a second. */
        @JsonProperty("copy_to_host_gb_per_s")
        public double toHostGigabytesPerSecond() {
            return bytes / toHostMillis / 1e6;
        }

        /** 10^9 bytes in a second. */
        @JsonProperty("copy_to_device_gb_per_s")
        public double toDeviceGigabytesPerSecond() {
            return bytes / toDeviceMillis / 1e6;
        }

        /** How much of the plain copy's rate the sleep reaches. */
        @JsonProperty("sleep_ratio")
        public double sleepRatio() {
            return toHostMillis / sleepMillis;
        }

        /** How much of the plain copy's rate the wake reaches. */
        @JsonProperty("wake_ratio")
        public double wakeRatio() {
            return toDeviceMillis / wakeMillis;
        }
    }

    /**
     * Sleeps of several sizes; those for which the device or the host has no room are left out, and
     * it is said so.
     *
     * @throws FleetException if there is no GPU, or a byte was wrong
     */
    public List<Kept> run(List<Long> sizes) {
        List<Kept> kept = new ArrayList<>();
        for (long bytes : sizes) {
            if (bytes > DeviceSide.usable(DeviceSide.freeOn(DeviceSide.OWNER_DEVICE))) {
                progress.say((bytes >> 20) + " MiB do not fit: left out");
                continue;
            }
            progress.say((bytes >> 20) + " MiB, kept on the host");
            try (DeviceSide side = new DeviceSide(bytes, DeviceSide.OWNER_DEVICE)) {
                Blocks all = Blocks.shuffled(bytes, Math.min(bytes, 64L << 20), 1);
                side.fill(all, bytes);
                HostLimits host = HostLimits.measure(bytes, DeviceMemory.contentThreads());
                var _ = cycle(side, bytes, host); // warms up, and pins what copies go through
                for (int round = 0; round < ROUNDS; round++) {
                    kept.add(cycle(side, bytes, host));
                }
                long wrong = side.wrongWords(all, all, bytes);
                if (wrong > 0) {
                    throw new FleetException(wrong + " words are wrong after a wake");
                }
            } catch (MemoryException e) {
                progress.say(
                        "%d MiB are not kept: left out: %s".formatted(bytes >> 20, e.getMessage()));
            }
        }
        return kept;
    }

    private static Kept cycle(DeviceSide side, long bytes, HostLimits host) {
        DeviceSide.HostCopies limit = side.hostCopies();
        long start = System.nanoTime();
        var _ = side.memory().sleep(TAGS, Retention.KEEP_ON_HOST);
        long slept = System.nanoTime();
        var _ = side.memory().wake(TAGS);
        long woken = System.nanoTime();
        return new Kept(
                bytes,
                (slept - start) / 1e6,
                (woken - slept) / 1e6,
                limit.toHostSeconds() * 1e3,
                limit.toDeviceSeconds() * 1e3,
                host.newGigabytesPerSecond(),
                host.readGigabytesPerSecond());
    }

    /** Prints a table. */
    public static void print(List<Kept> kept, PrintWriter out) {
        out.printf(
                "%7s %9s %9s %9s %9s %9s %7s %9s %9s %9s %7s%n",
                "kept",
                "sleep",
                "wake",
                "sleep",
                "DtoH",
                "new host",
                "ratio",
                "wake",
                "HtoD",
                "host read",
                "ratio");
        out.printf(
                "%7s %9s %9s %9s %9s %9s %7s %9s %9s %9s %7s%n",
                "MiB", "ms", "ms", "GB/s", "GB/s", "GB/s", "to DtoH", "GB/s", "GB/s", "GB/s",
                "to HtoD");
        for (Kept row : kept) {
            out.printf(
                    Locale.ROOT,
                    "%7d %9.1f %9.1f %9.2f %9.2f %9.2f %7.2f %9.2f %9.2f %9.2f %7.2f%n",
                    row.bytes() >> 20,
                    row.sleepMillis(),
                    row.wakeMillis(),
                    row.sleepGigabytesPerSecond(),
                    row.toHostGigabytesPerSecond(),
                    row.newHostGigabytesPerSecond(),
                    row.sleepRatio(),
                    row.wakeGigabytesPerSecond(),
                    row.toDeviceGigabytesPerSecond(),
                    row.hostReadGigabytesPerSecond(),
                    row.wakeRatio());
        }
        out.flush();
    }
}
