package dev.dormouse.testkit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
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

/** An owner of memory and a reader, each with registered memory, driven by one thread. */
final class ContractPair {
    static final Duration LIMIT = Duration.ofSeconds(60);
    static final int BLOCK_BYTES = 256;
    static final int BLOCKS = 16;
    static final byte[] DONE = {'r', '1', ':', '1'};

    final KvTransportContract.Node owner;
    final KvTransportContract.Node reader;
    final long ownerBase;
    final long readerBase;
    Registration ownerMemory;
    Registration readerMemory;
    private final MemoryKind kind;

    ContractPair(KvTransportContract.Node owner, KvTransportContract.Node reader, MemoryKind kind) {
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

    void drive(List<Message> ownersMessages) {
        owner.transport()
                .messages()
                .forEach(
                        message ->
                                ownersMessages.add(
                                        new Message(
                                                message.agentName(),
                                                new String(message.bytes(), UTF_8))));
        reader.transport().messages();
    }

    void driveABit(List<Message> ownersMessages) {
        for (int i = 0; i < 100; i++) {
            drive(ownersMessages);
        }
    }

    TransferState.Done readFully(BlockList local, int[] to, BlockList remote, int[] from) {
        Transfer transfer = reader.transport().read(local, to, remote, from, DONE);
        TransferState.Done done = awaitDone(transfer);
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        return done;
    }

    TransferState.Done awaitDone(Transfer transfer) {
        Await.until(
                "the read's end",
                LIMIT,
                () -> {
                    drive(new ArrayList<>());
                    return !(transfer.poll() instanceof TransferState.InProgress);
                },
                transfer::poll);
        TransferState end = transfer.poll();
        assertThat(end).isInstanceOf(TransferState.Done.class);
        return (TransferState.Done) end;
    }

    /** Reads everything from {@code peer} into the reader's memory, and compares. */
    void assertReads(RemotePeer peer, byte[] expected) {
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        int[] all = new int[BLOCKS];
        Arrays.setAll(all, i -> i);
        readFully(local, all, remote, all);
        local.close();
        remote.close();
        assertThat(reader.read(readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(expected);
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
