package dev.dormouse.testkit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/** An owner of memory and a reader, each with registered memory, driven by one thread. */
final class ContractPair {
    static final Duration LIMIT = Duration.ofSeconds(60);
    static final int BLOCK_BYTES = 256;
    static final int BLOCKS = 16;
    static final byte[] DONE = {'r', '1', ':', '1'};

    final ContractNode owner;
    final ContractNode reader;
    final long ownerBase;
    final long readerBase;
    Registration ownerMemory;
    Registration readerMemory;
    final List<Message> arrived = new ArrayList<>();
    private final MemoryKind kind;
    private @Nullable Lists lists;

    ContractPair(ContractNode owner, ContractNode reader, MemoryKind kind) {
        this.owner = owner;
        this.reader = reader;
        this.kind = kind;
        ownerBase = owner.allocate(BLOCKS * BLOCK_BYTES);
        readerBase = reader.allocate(BLOCKS * BLOCK_BYTES);
        owner.write(ownerBase, pattern(1));
        reader.write(readerBase, pattern(2));
        ownerMemory = owner.transport().register(List.of(range(ownerBase)));
        readerMemory = reader.transport().register(List.of(range(readerBase)));
    }

    /** A message's content, comparable. */
    record Message(String sender, String text) {}

    /** All memory of both sides, prepared by the reader. */
    record Lists(KvTransport transport, BlockList local, BlockList remote) {
        Transfer start(TransferWay way, int[] here, int[] there) {
            return way.start(transport, local, here, remote, there);
        }

        void close() {
            local.close();
            remote.close();
        }
    }

    /** All memory of both sides; they and their peer stay until the agents close. */
    Lists lists() {
        if (lists == null) {
            lists = prepare(load());
        }
        return lists;
    }

    Lists prepare(RemotePeer peer) {
        return new Lists(
                reader.transport(),
                reader.transport().prepareLocal(List.of(row(readerBase))),
                reader.transport().prepareRemote(peer, List.of(row(ownerBase))));
    }

    /** All bytes of the side that a transfer takes them from. */
    byte[] source(TransferWay way) {
        return way == TransferWay.READ ? ownerBytes() : readerBytes();
    }

    /** All bytes of the side that a transfer puts them to. */
    byte[] target(TransferWay way) {
        return way == TransferWay.READ ? readerBytes() : ownerBytes();
    }

    /** Writes as the owner of a transfer's source does. */
    void fillSource(TransferWay way, byte[] bytes) {
        if (way == TransferWay.READ) {
            owner.write(ownerBase, bytes);
        } else {
            reader.write(readerBase, bytes);
        }
    }

    private byte[] ownerBytes() {
        return owner.read(ownerBase, BLOCKS * BLOCK_BYTES);
    }

    private byte[] readerBytes() {
        return reader.read(readerBase, BLOCKS * BLOCK_BYTES);
    }

    /** Drives both sides; what the owner is told is added to {@link #arrived}. */
    void drive() {
        owner.transport()
                .messages()
                .forEach(
                        message ->
                                arrived.add(
                                        new Message(
                                                message.agentName(),
                                                new String(message.bytes(), UTF_8))));
        reader.transport().messages();
    }

    /** Revokes the owner's memory until nobody has it; the reader's thread is not needed for it. */
    void revokeOwnerMemory() {
        Await.until(
                "nobody left who uses the owner's memory",
                LIMIT,
                () -> {
                    owner.transport().messages();
                    return ownerMemory.revoke().isEmpty();
                },
                ownerMemory::revoke);
    }

    void closeOwnerMemory() {
        revokeOwnerMemory();
        ownerMemory.close();
    }

    void driveABit() {
        for (int i = 0; i < 100; i++) {
            drive();
        }
    }

    /** Waits until a transfer has ended well and the owner knows. */
    TransferState.Done finish(Transfer transfer) {
        int before = arrived.size();
        Await.until(
                "the transfer's end and its message",
                LIMIT,
                () -> {
                    drive();
                    return transfer.poll() instanceof TransferState.Failed
                            || (transfer.poll() instanceof TransferState.Done
                                    && arrived.size() > before);
                },
                () -> transfer.poll() + " " + arrived);
        TransferState end = transfer.poll();
        assertThat(end).isInstanceOf(TransferState.Done.class);
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        return (TransferState.Done) end;
    }

    /** Moves everything the one way, and compares. */
    void assertMoves(TransferWay way, RemotePeer peer) {
        Lists lists = prepare(peer);
        int[] all = new int[BLOCKS];
        Arrays.setAll(all, i -> i);
        finish(lists.start(way, all, all));
        lists.close();
        assertThat(target(way)).isEqualTo(source(way));
    }

    RemotePeer load() {
        RemotePeer peer = reader.transport().load(owner.transport().metadata());
        assertThat(peer.agentName()).isEqualTo(owner.transport().agentName());
        assertThat(peer.isConnected()).isTrue();
        return peer;
    }

    MemoryRange range(long address) {
        return new MemoryRange(address, BLOCKS * BLOCK_BYTES, kind, 0);
    }

    BlockRow row(long address) {
        return new BlockRow(address, BLOCK_BYTES, BLOCK_BYTES, BLOCKS, kind, 0);
    }

    static byte[] pattern(int seed) {
        byte[] bytes = new byte[BLOCKS * BLOCK_BYTES];
        new SplittableRandom(seed).nextBytes(bytes);
        return bytes;
    }

    static int[] distinct(SplittableRandom random, int count) {
        return random.ints(0, BLOCKS).distinct().limit(count).toArray();
    }
}
