package dev.dormouse.transport.nixl;

import dev.dormouse.memory.MemoryLease;
import dev.dormouse.memory.MemoryOptions;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.SleepableMemory;
import dev.dormouse.memory.SleepableRegion;
import dev.dormouse.testkit.ParentLink;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.lang.foreign.MemorySegment;
import java.util.Base64;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A process with sleepable memory on the bare transport, without any of the connector's rules: its
 * memory goes whenever the test wants, and its reads go wherever they are sent.
 */
final class RawNode {
    static final int BLOCKS = 512;

    private static final int BLOCK_BYTES = 16 << 10;
    private static final long REGION_BYTES = (long) BLOCKS * BLOCK_BYTES;
    private static final long READ_LIMIT_NANOS = 20_000_000_000L;
    private static final long IDLE_NANOS = 100_000;

    /** All blocks, no two that are neighbours in memory one behind the other: NIXL merges those. */
    private static final int[] ALL =
            IntStream.range(0, BLOCKS).map(i -> i * 255 % BLOCKS).toArray();

    /** How a read ended. */
    private enum Outcome {
        /** Bytes came, and all were those that were asked for. */
        RIGHT,
        /** Bytes came, others than those that were asked for. */
        OTHER,
        /** An error came. */
        FAILED,
        /** Nothing came. */
        STUCK
    }

    private final ParentLink parent;
    private final SleepableMemory memory =
            SleepableMemory.reserve(
                    MemoryOptions.of(Map.of(MemoryTag.KV_CACHE, REGION_BYTES)), System::nanoTime);
    private final SleepableRegion region = memory.allocate("kv", MemoryTag.KV_CACHE, REGION_BYTES);
    private final NixlTransport transport =
            NixlTransport.open("UCX", UcxSleepDefaults.applied(Map.of(), System.getenv()));
    private @Nullable Registration registration;
    private @Nullable RemotePeer peer;
    private @Nullable BlockList local;
    private @Nullable BlockList remote;

    private RawNode(ParentLink parent) {
        this.parent = parent;
        wake();
    }

    /** Takes no arguments. */
    public static void main(String[] args) {
        ParentLink parent = ParentLink.open();
        RawNode node = new RawNode(parent);
        for (String line = parent.take(); line != null; line = parent.take()) {
            parent.answer(node.answer(line.split(" ", 3)));
        }
        node.close();
    }

    private String answer(String[] words) {
        return switch (words[0]) {
            case "tell" ->
                    Base64.getEncoder().encodeToString(transport.metadata().agent())
                            + " "
                            + region.address();
            case "fill" -> {
                fill(Long.parseLong(words[1]));
                yield "filled";
            }
            case "sleep" -> {
                registered().close();
                registration = null;
                memory.sleep(Set.of(MemoryTag.KV_CACHE));
                yield "asleep";
            }
            case "wake" -> {
                wake();
                yield "awake";
            }
            case "load" -> {
                load(Base64.getDecoder().decode(words[1]), Long.parseLong(words[2]));
                yield "loaded";
            }
            case "read" -> read(Long.parseLong(words[1])).toString();
            case "post" -> {
                var _ = post(); // whatever becomes of it
                yield "posted";
            }
            case "stream" -> stream(Long.parseLong(words[1]));
            case "close" -> {
                close();
                yield "closed";
            }
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        };
    }

    private void fill(long seed) {
        try (MemoryLease lease = region.lease("fill")) {
            for (int block = 0; block < BLOCKS; block++) {
                KvContent.fill(block(lease.segment(), block), seed, block);
            }
        }
    }

    private void wake() {
        memory.wake(Set.of(MemoryTag.KV_CACHE));
        registration =
                transport.register(
                        List.of(
                                new MemoryRange(
                                        memory.address(MemoryTag.KV_CACHE),
                                        memory.lengthBytes(MemoryTag.KV_CACHE),
                                        MemoryKind.DRAM,
                                        0)));
    }

    /** Replaces whatever was loaded before. */
    private void load(byte[] metadata, long address) {
        if (peer != null) {
            list(remote).close();
            list(local).close();
            peer.close();
        }
        RemotePeer fresh = transport.load(TransportMetadata.ofAgent(metadata));
        peer = fresh;
        local = transport.prepareLocal(List.of(row(region.address())));
        remote = transport.prepareRemote(fresh, List.of(row(address)));
    }

    /** Reads all blocks, and looks at what came. */
    private Outcome read(long seed) {
        try (MemoryLease lease = region.lease("read")) {
            for (int block = 0; block < BLOCKS; block++) {
                KvContent.poison(block(lease.segment(), block));
            }
            Outcome outcome = transferAll();
            if (outcome != Outcome.RIGHT) {
                return outcome;
            }
            for (int block = 0; block < BLOCKS; block++) {
                if (!KvContent.matches(block(lease.segment(), block), seed, block)) {
                    return Outcome.OTHER;
                }
            }
            return Outcome.RIGHT;
        }
    }

    private Outcome transferAll() {
        Transfer transfer;
        try {
            transfer = post();
        } catch (TransportException e) {
            return Outcome.FAILED;
        }
        long startNanos = System.nanoTime();
        TransferState state = transfer.poll();
        while (state instanceof TransferState.InProgress || !transfer.release()) {
            if (System.nanoTime() - startNanos > READ_LIMIT_NANOS) {
                return Outcome.STUCK;
            }
            LockSupport.parkNanos(IDLE_NANOS);
            state = state instanceof TransferState.InProgress ? transfer.poll() : state;
        }
        return state instanceof TransferState.Done ? Outcome.RIGHT : Outcome.FAILED;
    }

    private Transfer post() {
        return transport.read(list(local), ALL, list(remote), ALL, new byte[] {1});
    }

    /** Reads again and again until the next command comes; tells what became of the reads. */
    private String stream(long seed) {
        Map<Outcome, Integer> counts = new EnumMap<>(Outcome.class);
        Outcome last = read(seed);
        counts.merge(last, 1, Integer::sum);
        parent.answer("streaming");
        String next = null;
        while (next == null && !parent.isEnded()) {
            if (last == Outcome.RIGHT || last == Outcome.OTHER) {
                last = read(seed);
                counts.merge(last, 1, Integer::sum);
            } else {
                LockSupport.parkNanos(IDLE_NANOS);
            }
            next = parent.poll();
        }
        return counts.toString();
    }

    private void close() {
        transport.close();
        memory.close();
    }

    private static BlockRow row(long address) {
        return new BlockRow(address, BLOCK_BYTES, BLOCK_BYTES, BLOCKS, MemoryKind.DRAM, 0);
    }

    private static MemorySegment block(MemorySegment all, int block) {
        return all.asSlice((long) block * BLOCK_BYTES, BLOCK_BYTES);
    }

    private Registration registered() {
        return Objects.requireNonNull(registration);
    }

    private static BlockList list(@Nullable BlockList list) {
        return Objects.requireNonNull(list);
    }
}
