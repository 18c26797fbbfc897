package dev.dormouse.cli.bench;

import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.foreign.ProcessCpuClock;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/** The reading side of {@code dormouse bench transfer}: one mapping, and one peer per transport. */
final class TransferReader implements AutoCloseable {
    private static final byte[] NOTIFICATION = {'b'};
    private static final long SEED = 1;
    private static final long PAUSE_NANOS = 20_000;

    /** Rounds that do not count, while the JVM compiles; all bytes are compared in them. */
    private static final int WARM_UPS = 3;

    /** A transport with the owner loaded. */
    private record Loaded(KvTransport transport, Registration own, RemotePeer peer) {}

    private final TransferSide side;
    private final TransferOwner.Told owner;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment mapped;
    private final Map<String, Loaded> loaded = new LinkedHashMap<>();

    /**
     * Maps the owner's memory and loads its agents.
     *
     * @param transports which of {@link TransferSide#NAMES} are measured
     */
    TransferReader(long lengthBytes, long pid, TransferOwner.Told owner, List<String> transports)
            throws IOException {
        this.side = new TransferSide(lengthBytes);
        this.owner = owner;
        Path file = Path.of("/proc/" + pid + "/fd/" + owner.descriptor());
        try (FileChannel channel = FileChannel.open(file)) {
            mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, lengthBytes, arena);
        }
        for (String name : transports) {
            KvTransport transport = side.open(name);
            Registration own = transport.register(List.of(side.range()));
            RemotePeer peer = transport.load(owner.agents().get(TransferSide.NAMES.indexOf(name)));
            loaded.put(name, new Loaded(transport, own, peer));
        }
    }

    /** Blocks in random order on both sides. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Blocks(int[] from, int[] to, long blockBytes) {
        static Blocks of(long bytes, long blockBytes) {
            SplittableRandom random = new SplittableRandom(SEED);
            int count = Math.toIntExact(bytes / blockBytes);
            return new Blocks(shuffled(count, random), shuffled(count, random), blockBytes);
        }

        private static int[] shuffled(int count, SplittableRandom random) {
            int[] indices = new int[count];
            for (int i = 0; i < count; i++) {
                int other = random.nextInt(i + 1);
                indices[i] = indices[other];
                indices[other] = i;
            }
            return indices;
        }
    }

    /**
     * Measures all transports and the plain copy, one after the other in each round.
     *
     * @return a row for each transport
     */
    List<TransferRate> measure(long bytes, long blockBytes, int rounds) {
        Blocks blocks = Blocks.of(bytes, blockBytes);
        Map<String, Best> best = new LinkedHashMap<>();
        loaded.keySet().forEach(name -> best.put(name, new Best()));
        Best memcpy = new Best();
        for (int round = -WARM_UPS; round < rounds; round++) {
            Taken plain = memcpy(blocks);
            for (Map.Entry<String, Best> each : best.entrySet()) {
                if (round < 0) {
                    side.segment().asSlice(0, bytes).fill((byte) 0);
                }
                Taken taken = read(each.getKey(), blocks);
                if (round < 0) {
                    requireRight(each.getKey(), blocks);
                } else {
                    each.getValue().add(taken);
                }
            }
            if (round >= 0) {
                memcpy.add(plain);
            }
        }
        List<TransferRate> rates = new ArrayList<>();
        best.forEach(
                (name, taken) ->
                        rates.add(
                                new TransferRate(
                                        name,
                                        bytes,
                                        blockBytes,
                                        bytes / (double) taken.nanos,
                                        bytes / (double) memcpy.nanos,
                                        bytes / (double) taken.cpuNanos,
                                        bytes / (double) memcpy.cpuNanos)));
        return rates;
    }

    /** What a copy has taken, by the wall clock and of this process's processor time. */
    private record Taken(long nanos, long cpuNanos) {
        static Taken since(long startNanos, long startCpuNanos) {
            return new Taken(
                    System.nanoTime() - startNanos, ProcessCpuClock.nanos() - startCpuNanos);
        }
    }

    /** The least of each that was seen. */
    private static final class Best {
        private long nanos = Long.MAX_VALUE;
        private long cpuNanos = Long.MAX_VALUE;

        void add(Taken taken) {
            nanos = Math.min(nanos, taken.nanos());
            cpuNanos = Math.min(cpuNanos, taken.cpuNanos());
        }
    }

    private Taken memcpy(Blocks blocks) {
        MemorySegment target = side.segment();
        long cpuStart = ProcessCpuClock.nanos();
        long start = System.nanoTime();
        for (int i = 0; i < blocks.from().length; i++) {
            MemorySegment.copy(
                    mapped,
                    blocks.from()[i] * blocks.blockBytes(),
                    target,
                    blocks.to()[i] * blocks.blockBytes(),
                    blocks.blockBytes());
        }
        return Taken.since(start, cpuStart);
    }

    private Taken read(String name, Blocks blocks) {
        Loaded over = loaded.get(name);
        if (over == null) {
            throw new IllegalArgumentException(name);
        }
        BlockList local =
                over.transport().prepareLocal(List.of(row(side.range().address(), blocks)));
        BlockList remote =
                over.transport().prepareRemote(over.peer(), List.of(row(owner.address(), blocks)));
        long cpuStart = ProcessCpuClock.nanos();
        long start = System.nanoTime();
        Transfer transfer =
                over.transport().read(local, blocks.to(), remote, blocks.from(), NOTIFICATION);
        TransferState state = transfer.poll();
        while (state instanceof TransferState.InProgress) {
            if (name.equals(TransferSide.LOCAL)) {
                LockSupport.parkNanos(PAUSE_NANOS); // a thread of its own copies
            } else {
                Thread.onSpinWait();
            }
            state = transfer.poll();
        }
        Taken taken = Taken.since(start, cpuStart);
        if (state instanceof TransferState.Failed(String reason)) {
            throw new FleetException("a read over " + name + " failed: " + reason);
        }
        while (!transfer.release()) {
            var _ = over.transport().messages();
        }
        local.close();
        remote.close();
        return taken;
    }

    private static BlockRow row(long address, Blocks blocks) {
        return new BlockRow(
                address,
                blocks.blockBytes(),
                blocks.blockBytes(),
                blocks.from().length,
                MemoryKind.DRAM,
                0);
    }

    private void requireRight(String name, Blocks blocks) {
        for (int i = 0; i < blocks.from().length; i++) {
            long from = blocks.from()[i] * blocks.blockBytes();
            long to = blocks.to()[i] * blocks.blockBytes();
            long end = blocks.blockBytes();
            if (MemorySegment.mismatch(mapped, from, from + end, side.segment(), to, to + end)
                    >= 0) {
                throw new FleetException("a read over " + name + " brought wrong bytes");
            }
        }
    }

    @Override
    public void close() {
        side.close();
        arena.close();
    }
}
