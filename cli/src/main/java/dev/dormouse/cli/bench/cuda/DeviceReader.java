package dev.dormouse.cli.bench.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * The process that reads from its parent's GPU memory. It takes a {@link Task} as a line of JSON
 * and answers with a line; it ends when there are no more.
 */
@Command(name = "device-reader", hidden = true)
public final class DeviceReader implements Callable<Integer> {
    /** Begins the line of an answer. */
    static final String ANSWER = "Reader ";

    private static final byte[] NOTIFICATION = {'b'};
    private static final int READS = 5;

    /** The first reads of a process run uncompiled, many times as long as later ones. */
    private static final int WARM_UP_READS = 10_000;

    private static final long WARM_UP_BLOCK_BYTES = 4 << 10;
    private static final long WARM_UP_BYTES = 32L << 30;
    private static final int MAX_WARM_UP = 500;

    /** For a read that does not end. */
    private static final double READ_LIMIT_MILLIS = 60_000;

    /** After which no further round begins. */
    private static final double LIMIT_MILLIS = 20_000;

    @Option(names = "--bytes", required = true)
    private long lengthBytes;

    @Option(names = "--device", defaultValue = "0")
    private int device;

    /** By transport. */
    private final Map<String, RemotePeer> peers = new HashMap<>();

    private final Set<String> registered = new HashSet<>();
    private long ownerAddress;
    private boolean warm;

    /** Made by picocli. */
    public DeviceReader() {}

    /**
     * What is to be done.
     *
     * @param kind {@code load}, {@code read}, {@code first} (a load and one read), {@code check} or
     *     {@code measure}
     * @param transport that moves the blocks
     * @param metadata of the owner, in hexadecimal digits; for {@code load} and {@code first}
     * @param address of the owner's memory
     * @param bytes of it: for {@code measure} how many are read
     * @param blockBytes for {@code measure}; else 0
     * @param rounds for {@code measure}
     * @param salt of the owner's content
     * @param all whether all bytes are read, not some from everywhere
     */
    record Task(
            String kind,
            String transport,
            String metadata,
            long address,
            long bytes,
            long blockBytes,
            int rounds,
            long salt,
            boolean all) {
        private static final long ALL_BLOCK_BYTES = 256L << 10;

        Blocks blocks() {
            return all ? Blocks.shuffled(bytes, ALL_BLOCK_BYTES, 1) : Blocks.spread(bytes);
        }
    }

    /** What a task gave; each only where the task has it. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Answer(double loadMillis, double[] readMillis, long wrongWords, double[] copyMillis) {}

    @Override
    public Integer call() throws IOException {
        try (DeviceSide side = new DeviceSide(lengthBytes, device)) {
            register(side, DeviceSide.LOCAL);
            answer(new Answer(0, new double[0], 0, new double[0]));
            BufferedReader tasks = new BufferedReader(new InputStreamReader(System.in, UTF_8));
            for (String line = tasks.readLine(); line != null; line = tasks.readLine()) {
                answer(run(side, Json.MAPPER.readValue(line, Task.class)));
            }
            peers.values().forEach(RemotePeer::close);
        }
        return 0;
    }

    private void register(DeviceSide side, String transport) {
        if (registered.add(transport)) {
            var _ = side.transport(transport).register(List.of(side.range()));
        }
    }

    private static void answer(Answer answer) {
        JsonNode json = Json.MAPPER.valueToTree(answer);
        System.out.println(ANSWER + json);
    }

    private Answer run(DeviceSide side, Task task) {
        Blocks blocks = task.blocks();
        double[] none = {};
        return switch (task.kind()) {
            case "load" -> new Answer(load(side, task), none, 0, none);
            case "first" ->
                    new Answer(
                            load(side, task),
                            new double[] {read(side, task.transport(), blocks, blocks.dense())},
                            0,
                            none);
            case "read" -> {
                double[] millis = new double[READS];
                for (int i = 0; i < READS; i++) {
                    millis[i] = read(side, task.transport(), blocks, blocks.dense());
                }
                yield new Answer(0, millis, 0, none);
            }
            case "check" -> new Answer(0, none, check(side, task, blocks, blocks.dense()), none);
            case "measure" -> measure(side, task);
            default -> throw new IllegalArgumentException(task.kind());
        };
    }

    private double load(DeviceSide side, Task task) {
        String name = task.transport();
        register(side, name);
        long start = System.nanoTime();
        RemotePeer last = peers.remove(name);
        if (last != null) {
            last.close();
        }
        ownerAddress = task.address();
        peers.put(name, side.transport(name).load(DeviceSide.told(name, task.metadata())));
        return millisSince(start);
    }

    private long check(DeviceSide side, Task task, Blocks source, Blocks target) {
        side.poison();
        double _ = read(side, task.transport(), source, target);
        return side.wrongWords(source, target, task.salt());
    }

    private Answer measure(DeviceSide side, Task task) {
        Blocks source = Blocks.shuffled(task.bytes(), task.blockBytes(), 1);
        Blocks target = Blocks.shuffled(task.bytes(), task.blockBytes(), 2);
        long wrong = check(side, task, source, target);
        String transport = task.transport();
        if (transport.equals(DeviceSide.LOCAL)) {
            warmUp(side);
            long warmUp = Math.clamp(WARM_UP_BYTES / task.bytes(), 2, MAX_WARM_UP);
            for (long i = 0; i < warmUp; i++) {
                double _ = read(side, transport, source, target);
                double _ = side.copySeconds(task.bytes());
            }
        }
        double[] read = new double[task.rounds()];
        double[] copy = new double[task.rounds()];
        long start = System.nanoTime();
        int done = 0;
        while (done < task.rounds() && (done == 0 || millisSince(start) < LIMIT_MILLIS)) {
            copy[done] = side.copySeconds(task.bytes()) * 1e3;
            read[done] = read(side, transport, source, target);
            done++;
        }
        return new Answer(0, Arrays.copyOf(read, done), wrong, Arrays.copyOf(copy, done));
    }

    private void warmUp(DeviceSide side) {
        if (!warm) {
            warm = true;
            Blocks few = Blocks.shuffled(WARM_UP_BLOCK_BYTES << 6, WARM_UP_BLOCK_BYTES, 1);
            for (int i = 0; i < WARM_UP_READS; i++) {
                double _ = read(side, DeviceSide.LOCAL, few, few);
            }
        }
    }

    /** The milliseconds of one read, from the call to the sight of its end. */
    private double read(DeviceSide side, String name, Blocks source, Blocks target) {
        RemotePeer from = peers.get(name);
        if (from == null) {
            throw new FleetException("nothing is loaded");
        }
        KvTransport transport = side.transport(name);
        try (BlockList local =
                        transport.prepareLocal(List.of(target.row(side.address(), side.device())));
                BlockList remote =
                        transport.prepareRemote(
                                from, List.of(source.row(ownerAddress, DeviceSide.OWNER_DEVICE)))) {
            long start = System.nanoTime();
            Transfer transfer =
                    transport.read(local, target.order(), remote, source.order(), NOTIFICATION);
            TransferState state = transfer.poll();
            while (state instanceof TransferState.InProgress) {
                if (millisSince(start) > READ_LIMIT_MILLIS) {
                    throw new FleetException("a read over " + name + " does not end");
                }
                Thread.onSpinWait();
                state = transfer.poll();
            }
            double millis = millisSince(start);
            if (!transfer.release()) {
                throw new FleetException("a transfer that has ended is not released");
            }
            if (state instanceof TransferState.Failed(String reason)) {
                throw new FleetException("a read failed: " + reason);
            }
            return millis;
        }
    }

    private static double millisSince(long startNanos) {
        return (System.nanoTime() - startNanos) / 1e6;
    }
}
