package dev.dormouse.cli.bench.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportMetadata;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
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

    @Option(names = "--bytes", required = true)
    private long lengthBytes;

    private @Nullable RemotePeer peer;
    private long ownerAddress;
    private boolean warm;

    /** Made by picocli. */
    public DeviceReader() {}

    /**
     * What is to be done.
     *
     * @param kind {@code load}, {@code read}, {@code first} (a load and one read), {@code check} or
     *     {@code measure}
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
        try (DeviceSide side = new DeviceSide(lengthBytes)) {
            var _ = side.transport().register(List.of(side.range()));
            answer(new Answer(0, new double[0], 0, new double[0]));
            BufferedReader tasks = new BufferedReader(new InputStreamReader(System.in, UTF_8));
            for (String line = tasks.readLine(); line != null; line = tasks.readLine()) {
                answer(run(side, Json.MAPPER.readValue(line, Task.class)));
            }
            closePeer();
        }
        return 0;
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
                            new double[] {read(side, blocks, blocks.dense())},
                            0,
                            none);
            case "read" -> {
                double[] millis = new double[READS];
                for (int i = 0; i < READS; i++) {
                    millis[i] = read(side, blocks, blocks.dense());
                }
                yield new Answer(0, millis, 0, none);
            }
            case "check" -> new Answer(0, none, check(side, task, blocks, blocks.dense()), none);
            case "measure" -> measure(side, task);
            default -> throw new IllegalArgumentException(task.kind());
        };
    }

    private double load(DeviceSide side, Task task) {
        long start = System.nanoTime();
        closePeer();
        ownerAddress = task.address();
        peer =
                side.transport()
                        .load(
                                TransportMetadata.ofSameHost(
                                        HexFormat.of().parseHex(task.metadata())));
        return millisSince(start);
    }

    private void closePeer() {
        if (peer != null) {
            peer.close();
            peer = null;
        }
    }

    private long check(DeviceSide side, Task task, Blocks source, Blocks target) {
        side.poison();
        double _ = read(side, source, target);
        return side.wrongWords(source, target, task.salt());
    }

    private Answer measure(DeviceSide side, Task task) {
        Blocks source = Blocks.shuffled(task.bytes(), task.blockBytes(), 1);
        Blocks target = Blocks.shuffled(task.bytes(), task.blockBytes(), 2);
        long wrong = check(side, task, source, target);
        warmUp(side);
        long warmUp = Math.clamp(WARM_UP_BYTES / task.bytes(), 2, MAX_WARM_UP);
        for (long i = 0; i < warmUp; i++) {
            double _ = read(side, source, target);
            double _ = side.copySeconds(task.bytes());
        }
        double[] read = new double[task.rounds()];
        double[] copy = new double[task.rounds()];
        for (int i = 0; i < task.rounds(); i++) {
            copy[i] = side.copySeconds(task.bytes()) * 1e3;
            read[i] = read(side, source, target);
        }
        return new Answer(0, read, wrong, copy);
    }

    private void warmUp(DeviceSide side) {
        if (!warm) {
            warm = true;
            Blocks few = Blocks.shuffled(WARM_UP_BLOCK_BYTES << 6, WARM_UP_BLOCK_BYTES, 1);
            for (int i = 0; i < WARM_UP_READS; i++) {
                double _ = read(side, few, few);
            }
        }
    }

    /** The milliseconds of one read, from the call to the sight of its end. */
    private double read(DeviceSide side, Blocks source, Blocks target) {
        RemotePeer from = peer;
        if (from == null) {
            throw new FleetException("nothing is loaded");
        }
        try (BlockList local = side.transport().prepareLocal(List.of(target.row(side.address())));
                BlockList remote =
                        side.transport().prepareRemote(from, List.of(source.row(ownerAddress)))) {
            long start = System.nanoTime();
            Transfer transfer =
                    side.transport()
                            .read(local, target.order(), remote, source.order(), NOTIFICATION);
            TransferState state = transfer.poll();
            while (state instanceof TransferState.InProgress) {
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
