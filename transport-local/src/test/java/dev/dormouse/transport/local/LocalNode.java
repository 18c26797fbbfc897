package dev.dormouse.transport.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

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
import java.nio.file.Path;
import java.util.Base64;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** A process with sleepable memory on the transport; its parent says what to do next. */
final class LocalNode {
    private static final int BLOCKS = 2048;
    private static final long BLOCK_BYTES = 32 << 10;
    private static final long CHECK_BYTES = 512;
    private static final long READ_LIMIT_NANOS = 20_000_000_000L;
    private static final long IDLE_NANOS = 100_000;

    /** All blocks, no two that are neighbours in memory one behind the other. */
    private static final int[] ALL =
            IntStream.range(0, BLOCKS).map(i -> i * 511 % BLOCKS).toArray();

    /** How a read ended. */
    enum Outcome {
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
    private final NodeMemory memory;
    private final LocalTransport transport;
    private @Nullable Registration registration;
    private @Nullable RemotePeer peer;
    private @Nullable BlockList local;
    private @Nullable BlockList remote;

    private LocalNode(ParentLink parent, NodeMemory memory) {
        this.parent = parent;
        this.memory = memory;
        this.transport = LocalTransport.open(memory.options());
        wake();
        long _ = memory.peerMappings();
    }

    /** Takes the kind of memory, and a folder for kernels. */
    public static void main(String[] args) {
        ParentLink parent = ParentLink.open();
        LocalNode node =
                new LocalNode(
                        parent,
                        switch (MemoryKind.valueOf(args[0])) {
                            case DRAM -> new HostNodeMemory();
                            case VRAM -> new DeviceNodeMemory(Path.of(args[1]));
                        });
        for (String line = parent.take(); line != null; line = parent.take()) {
            String answer;
            try {
                answer = node.answer(line.split(" ", 3));
            } catch (TransportException e) {
                answer = "refused: " + e.getMessage();
            }
            parent.answer(answer);
        }
        node.transport.close();
        node.memory.close();
    }

    private String answer(String[] words) {
        return switch (words[0]) {
            case "tell" ->
                    Base64.getEncoder().encodeToString(transport.metadata().sameHost())
                            + " "
                            + memory.address();
            case "fill" -> fill(Long.parseLong(words[1]));
            case "revoke" -> registered().revoke().toString();
            case "readmit" -> {
                registered().readmit();
                yield "readmitted";
            }
            case "close" -> {
                registered().close();
                registration = null;
                yield "closed";
            }
            case "sleep" -> {
                memory.sleep();
                yield "asleep";
            }
            case "wake" -> wake();
            case "load" -> load(words[1], Long.parseLong(words[2]));
            case "read" -> read(Long.parseLong(words[1])).toString();
            case "stream" -> stream(Long.parseLong(words[1]));
            case "connected" -> Boolean.toString(Objects.requireNonNull(peer).isConnected());
            case "messages" -> Integer.toString(transport.messages().size());
            case "mappings" -> Long.toString(memory.peerMappings());
            case "free" -> Long.toString(memory.freeBytes());
            case "drop" -> drop();
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        };
    }

    private String wake() {
        memory.wake();
        registration =
                transport.register(
                        List.of(
                                new MemoryRange(
                                        memory.address(), NodeMemory.BYTES, memory.kind(), 0)));
        return "awake";
    }

    private String fill(long seed) {
        memory.write(
                all -> {
                    for (long at = 0; at < NodeMemory.BYTES; at += CHECK_BYTES) {
                        all.set(JAVA_LONG_UNALIGNED, at, content(seed, at));
                    }
                });
        return "filled";
    }

    private static long content(long seed, long at) {
        return seed << 40 | at;
    }

    /** Replaces whatever was loaded before. */
    private String load(String metadata, long address) {
        drop();
        RemotePeer fresh =
                transport.load(TransportMetadata.ofSameHost(Base64.getDecoder().decode(metadata)));
        peer = fresh;
        local = transport.prepareLocal(List.of(row(memory.address())));
        remote = transport.prepareRemote(fresh, List.of(row(address)));
        return "loaded";
    }

    private String drop() {
        if (peer != null) {
            list(remote).close();
            list(local).close();
            peer.close();
            peer = null;
        }
        return "dropped";
    }

    /** Reads all blocks, and looks at what came. */
    private Outcome read(long seed) {
        Outcome outcome = transferAll();
        if (outcome != Outcome.RIGHT) {
            return outcome;
        }
        Outcome[] found = {Outcome.RIGHT};
        memory.read(
                all -> {
                    for (long at = 0; at < NodeMemory.BYTES; at += CHECK_BYTES) {
                        if (all.get(JAVA_LONG_UNALIGNED, at) != content(seed, at)) {
                            found[0] = Outcome.OTHER;
                        }
                    }
                });
        return found[0];
    }

    private Outcome transferAll() {
        Transfer transfer;
        try {
            transfer = transport.read(list(local), ALL, list(remote), ALL, new byte[] {1});
        } catch (TransportException e) {
            return Outcome.FAILED;
        }
        long startNanos = System.nanoTime();
        TransferState state = transfer.poll();
        while (state instanceof TransferState.InProgress) {
            if (System.nanoTime() - startNanos > READ_LIMIT_NANOS) {
                return Outcome.STUCK;
            }
            LockSupport.parkNanos(IDLE_NANOS);
            state = transfer.poll();
        }
        if (!transfer.release()) {
            return Outcome.STUCK;
        }
        return state instanceof TransferState.Done ? Outcome.RIGHT : Outcome.FAILED;
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

    private BlockRow row(long address) {
        return new BlockRow(address, BLOCK_BYTES, BLOCK_BYTES, BLOCKS, memory.kind(), 0);
    }

    private Registration registered() {
        return Objects.requireNonNull(registration);
    }

    private static BlockList list(@Nullable BlockList list) {
        return Objects.requireNonNull(list);
    }
}
