package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * Compares reads through the transport with plain copies out of a mapping of the same file, in one
 * run, by the processor time that they take, so that other work on the machine counts little;
 * prints a table. Takes no arguments.
 */
final class CopyRateBenchmark {
    private static final long TOTAL_BYTES = 256L << 20;
    private static final int ROUNDS = 15;
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    private static final long IDLE_NANOS = 20_000;
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final Node owner = new Node();
    private final Node reader = new Node();
    private final RemotePeer peer = reader.transport.load(owner.transport.metadata());
    private final MemorySegment plain;
    private final List<Long> copyThreads =
            Thread.getAllStackTraces().keySet().stream()
                    .filter(thread -> thread.getName().startsWith(CopyThreads.NAME))
                    .map(Thread::threadId)
                    .toList();

    private CopyRateBenchmark() {
        int file = owner.memory.export(MemoryTag.KV_CACHE);
        plain = Libc.map(TOTAL_BYTES, Libc.PROT_READ, Libc.MAP_SHARED, file, 0);
        Libc.close(file);
        Libc.advise(plain, Libc.MADV_POPULATE_READ);
    }

    /** A process's part. */
    private static final class Node {
        private final SleepableMemory memory =
                SleepableMemory.reserve(
                        MemoryOptions.of(Map.of(MemoryTag.KV_CACHE, TOTAL_BYTES)),
                        System::nanoTime);
        private final LocalTransport transport =
                LocalTransport.open(LocalTransportOptions.of(this::export));

        Node() {
            memory.wake(Set.of(MemoryTag.KV_CACHE));
            var _ =
                    transport.register(
                            List.of(new MemoryRange(address(), TOTAL_BYTES, MemoryKind.DRAM, 0)));
        }

        long address() {
            return memory.address(MemoryTag.KV_CACHE);
        }

        private BackingFile export(MemoryRange range) {
            return new BackingFile(
                    memory.export(MemoryTag.KV_CACHE),
                    range.address() - address(),
                    range.lengthBytes());
        }
    }

    /** Prints a line per block size. */
    public static void main(String[] args) {
        CopyRateBenchmark benchmark = new CopyRateBenchmark();
        for (int blockBytes : new int[] {8 << 10, 32 << 10, 1 << 20}) {
            benchmark.compare(blockBytes, true);
            benchmark.compare(blockBytes, false);
        }
        benchmark.small();
        benchmark.reader.transport.close();
        benchmark.owner.transport.close();
    }

    private void compare(int blockBytes, boolean shuffled) {
        int blocks = (int) (TOTAL_BYTES / blockBytes);
        int[] here = order(blocks, 0);
        int[] there = shuffled ? order(blocks, 7) : here;
        BlockList local = reader.transport.prepareLocal(rows(reader, blockBytes, blocks));
        BlockList remote = reader.transport.prepareRemote(peer, rows(owner, blockBytes, blocks));
        long[] throughTransport = new long[ROUNDS];
        long[] plainCopy = new long[ROUNDS];
        long[] whole = new long[ROUNDS];
        for (int round = -3; round < ROUNDS; round++) {
            long plainNanos = copyPlainly(here, there, blockBytes);
            long before = copyThreadNanos();
            Duration duration = read(local, here, remote, there);
            long transportNanos = copyThreadNanos() - before;
            if (round >= 0) {
                plainCopy[round] = plainNanos;
                throughTransport[round] = transportNanos;
                whole[round] = duration.toNanos();
            }
        }
        local.close();
        remote.close();
        double plainRate = TOTAL_BYTES / (double) fastest(plainCopy);
        double rate = TOTAL_BYTES / (double) fastest(throughTransport);
        System.out.printf(
                "%4d KiB %-9s plain %5.2f GB/s, transport %5.2f GB/s, ratio %.3f;"
                        + " %d threads together %5.2f GB/s%n",
                blockBytes >> 10,
                shuffled ? "shuffled" : "in order",
                plainRate,
                rate,
                rate / plainRate,
                copyThreads.size() / 2,
                TOTAL_BYTES / (double) fastest(whole));
    }

    /** How long one block of 32 KiB takes, with all that is around it. */
    private void small() {
        int[] one = {0};
        BlockList local = reader.transport.prepareLocal(rows(reader, 32 << 10, 1));
        BlockList remote = reader.transport.prepareRemote(peer, rows(owner, 32 << 10, 1));
        long[] nanos = new long[2000];
        for (int i = 0; i < nanos.length; i++) {
            nanos[i] = read(local, one, remote, one).toNanos();
            owner.transport.messages();
        }
        Arrays.sort(nanos);
        System.out.printf(
                "one block of 32 KiB: p50 %.1f us, p99 %.1f us%n",
                nanos[nanos.length / 2] / 1e3, nanos[nanos.length * 99 / 100] / 1e3);
    }

    private Duration read(BlockList local, int[] here, BlockList remote, int[] there) {
        Transfer transfer = reader.transport.read(local, here, remote, there, new byte[] {1});
        TransferState state = transfer.poll();
        while (state instanceof TransferState.InProgress) {
            LockSupport.parkNanos(IDLE_NANOS);
            state = transfer.poll();
        }
        boolean _ = transfer.release();
        return ((TransferState.Done) state).duration();
    }

    private long copyPlainly(int[] here, int[] there, long blockBytes) {
        long start = CLOCK.getCurrentThreadCpuTime();
        for (int i = 0; i < here.length; i++) {
            MemorySegment.copy(
                    ALL,
                    plain.address() + there[i] * blockBytes,
                    ALL,
                    reader.address() + here[i] * blockBytes,
                    blockBytes);
        }
        return CLOCK.getCurrentThreadCpuTime() - start;
    }

    private long copyThreadNanos() {
        return copyThreads.stream().mapToLong(CLOCK::getThreadCpuTime).sum();
    }

    private static List<BlockRow> rows(Node node, long blockBytes, int blocks) {
        return List.of(
                new BlockRow(node.address(), blockBytes, blockBytes, blocks, MemoryKind.DRAM, 0));
    }

    private static int[] order(int count, long seed) {
        int[] order = new int[count];
        Arrays.setAll(order, i -> i);
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = count - 1; i > 0 && seed != 0; i--) {
            int j = random.nextInt(i + 1);
            int swapped = order[i];
            order[i] = order[j];
            order[j] = swapped;
        }
        return order;
    }

    /** What other work on the machine disturbed least. */
    private static long fastest(long[] values) {
        return Arrays.stream(values).min().orElseThrow();
    }
}
