package dev.dormouse.testkit;

import static dev.dormouse.testkit.ContractPair.BLOCKS;
import static dev.dormouse.testkit.ContractPair.BLOCK_BYTES;
import static dev.dormouse.testkit.ContractPair.DONE;
import static dev.dormouse.testkit.ContractPair.LIMIT;
import static dev.dormouse.testkit.ContractPair.distinct;
import static dev.dormouse.testkit.ContractPair.pattern;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.ContractPair.Message;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What every {@link KvTransport} must do. A transport's own test class extends this and supplies
 * agents with memory. Both agents live in the test's process and are driven by its thread.
 */
public abstract class KvTransportContract {
    /** An agent, and the memory of the process it serves. */
    protected interface Node extends AutoCloseable {
        /** The agent. */
        KvTransport transport();

        /** Takes memory that lives until the node is closed. */
        long allocate(long lengthBytes);

        /** Writes as the memory's owner does. */
        void write(long address, byte[] bytes);

        /** Reads as the memory's owner does. */
        byte[] read(long address, int lengthBytes);

        /** Closes the agent, then frees the memory. Idempotent. */
        @Override
        void close();
    }

    private final List<Node> nodes = new ArrayList<>();
    private ContractPair pair;
    private Node owner;
    private Node reader;

    /** Starts an agent whose name nobody has used. */
    protected abstract Node open();

    /** Where the nodes' memory lies. */
    protected MemoryKind memoryKind() {
        return MemoryKind.DRAM;
    }

    @BeforeEach
    void openOwnerAndReader() {
        owner = track(open());
        reader = track(open());
        pair = new ContractPair(owner, reader, memoryKind());
    }

    @AfterEach
    void closeAll() {
        nodes.reversed().forEach(Node::close);
        nodes.clear();
    }

    @Test
    void readMovesExactlyTheNamedBlocks() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        byte[] source = pattern(1);
        Seeded.forAll(
                20,
                random -> {
                    byte[] expected = reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES);
                    int count = random.nextInt(1, BLOCKS + 1);
                    int[] to = distinct(random, count);
                    int[] from = distinct(random, count);
                    for (int i = 0; i < count; i++) {
                        System.arraycopy(
                                source,
                                from[i] * BLOCK_BYTES,
                                expected,
                                to[i] * BLOCK_BYTES,
                                BLOCK_BYTES);
                    }
                    TransferState.Done done = pair.readFully(local, to, remote, from);
                    assertThat(done.bytes()).isEqualTo((long) count * BLOCK_BYTES);
                    assertThat(done.descriptors()).isBetween(1L, (long) count);
                    assertThat(reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES))
                            .isEqualTo(expected);
                    assertThat(owner.read(pair.ownerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(source);
                });
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void rowsAreNumberedOneBehindTheOtherAndKeepTheirStride() {
        RemotePeer peer = pair.load();
        int half = BLOCK_BYTES / 2;
        List<BlockRow> localRows =
                List.of(
                        new BlockRow(pair.readerBase, half, BLOCK_BYTES, 3, memoryKind(), 0),
                        new BlockRow(
                                pair.readerBase + half, half, BLOCK_BYTES, 5, memoryKind(), 0));
        List<BlockRow> remoteRows =
                List.of(
                        new BlockRow(pair.ownerBase, half, BLOCK_BYTES, 6, memoryKind(), 0),
                        new BlockRow(pair.ownerBase + half, half, half, 4, memoryKind(), 0));
        BlockList local = reader.transport().prepareLocal(localRows);
        BlockList remote = reader.transport().prepareRemote(peer, remoteRows);
        assertThat(local.size()).isEqualTo(8);
        assertThat(remote.size()).isEqualTo(10);
        byte[] before = reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES);
        byte[] source = pattern(1);
        System.arraycopy(source, half + 2 * half, before, half + 4 * BLOCK_BYTES, half);
        System.arraycopy(source, 5 * BLOCK_BYTES, before, 2 * BLOCK_BYTES, half);

        pair.readFully(local, new int[] {7, 2}, remote, new int[] {8, 5});

        assertThat(reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(before);
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void theAttachedMessageArrivesOnceAndWithTheSendersName() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        Transfer transfer =
                reader.transport().read(local, new int[] {0}, remote, new int[] {3}, DONE);
        List<Message> arrived = new ArrayList<>();
        Await.until(
                "the read's end and its message",
                LIMIT,
                () -> {
                    pair.drive(arrived);
                    return transfer.poll() instanceof TransferState.Done && !arrived.isEmpty();
                },
                () -> transfer.poll() + " " + arrived);
        pair.driveABit(arrived);
        assertThat(arrived).containsExactly(new Message(reader.transport().agentName(), "r1:1"));
        assertThat(reader.read(pair.readerBase, BLOCK_BYTES))
                .isEqualTo(Arrays.copyOfRange(pattern(1), 3 * BLOCK_BYTES, 4 * BLOCK_BYTES));
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void messagesArriveInOrderAndWithoutAReadToo() {
        RemotePeer peer = pair.load();
        List<Message> expected = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            reader.transport().notify(peer, ("HB:" + i).getBytes(UTF_8));
            expected.add(new Message(reader.transport().agentName(), "HB:" + i));
        }
        List<Message> arrived = new ArrayList<>();
        Await.until(
                "20 messages",
                LIMIT,
                () -> {
                    pair.drive(arrived);
                    return arrived.size() >= expected.size();
                },
                () -> arrived);
        assertThat(arrived).isEqualTo(expected);
        peer.close();
    }

    @Test
    void aLoadedAgentIsNotLoadedOnceMoreAndStaysUsable() {
        RemotePeer peer = pair.load();
        byte[] metadata = owner.transport().metadata();
        assertThatExceptionOfType(PeerLoadedException.class)
                .isThrownBy(() -> reader.transport().load(metadata))
                .satisfies(e -> assertThat(e.agentName()).isEqualTo(peer.agentName()));
        pair.assertReads(peer, pattern(1));
        peer.close();
        peer.close();
        pair.assertReads(pair.load(), pattern(1));
    }

    @Test
    void unusableMetadataIsRefusedAndHarmsNoLoadedPeer() {
        RemotePeer peer = pair.load();
        byte[] good = track(open()).transport().metadata();
        for (byte[] bad :
                List.of(
                        new byte[0],
                        new byte[] {0},
                        new byte[4096],
                        "not metadata at all".getBytes(UTF_8),
                        Arrays.copyOf(good, good.length / 2),
                        Arrays.copyOf(good, good.length - 1))) {
            assertThatThrownBy(() -> reader.transport().load(bad))
                    .isInstanceOf(TransportException.class);
        }
        pair.assertReads(peer, pattern(1));
    }

    @Test
    void blocksOutsideTheRegisteredMemoryAreRefused() {
        RemotePeer peer = pair.load();
        long end = BLOCKS * BLOCK_BYTES;
        for (long offset : new long[] {-BLOCK_BYTES, end - 1, end, 1L << 40}) {
            BlockRow behind =
                    new BlockRow(
                            pair.ownerBase + offset, BLOCK_BYTES, BLOCK_BYTES, 1, memoryKind(), 0);
            assertThatThrownBy(() -> reader.transport().prepareRemote(peer, List.of(behind)))
                    .isInstanceOf(TransportException.class);
        }
        BlockRow unregistered =
                new BlockRow(
                        reader.allocate(BLOCK_BYTES), BLOCK_BYTES, BLOCK_BYTES, 1, memoryKind(), 0);
        assertThatThrownBy(() -> reader.transport().prepareLocal(List.of(unregistered)))
                .isInstanceOf(TransportException.class);
        pair.assertReads(peer, pattern(1));
    }

    @Test
    void indicesThatDoNotPairOrDoNotExistAreRefused() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        byte[] before = reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES);
        int[][][] bad = {
            {{}, {}},
            {{0}, {0, 1}},
            {{BLOCKS}, {0}},
            {{0}, {BLOCKS}},
            {{-1}, {0}},
            {{0}, {-1}},
            {{0}, {Integer.MAX_VALUE}}
        };
        for (int[][] pair : bad) {
            assertThatIllegalArgumentException()
                    .isThrownBy(
                            () -> reader.transport().read(local, pair[0], remote, pair[1], DONE));
        }
        assertThat(reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(before);
        pair.readFully(local, new int[] {0}, remote, new int[] {0});
        local.close();
        remote.close();
    }

    @Test
    void nothingIsClosedUnderWhatUsesIt() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        assertThatIllegalStateException().isThrownBy(pair.readerMemory::close);
        assertThatIllegalStateException().isThrownBy(peer::close);
        Transfer transfer =
                reader.transport().read(local, new int[] {0}, remote, new int[] {0}, DONE);
        assertThatIllegalStateException().isThrownBy(local::close);
        assertThatIllegalStateException().isThrownBy(remote::close);
        pair.awaitDone(transfer);
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        assertThat(transfer.release()).isTrue();
        for (int twice = 0; twice < 2; twice++) {
            local.close();
            remote.close();
            peer.close();
            pair.readerMemory.close();
        }
        assertThatThrownBy(
                        () -> reader.transport().prepareLocal(List.of(pair.row(pair.readerBase))))
                .isInstanceOf(TransportException.class);
    }

    @Test
    void aTransferIsReleasedOnlyWhenItHasEnded() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        int[] all = IntStream.range(0, BLOCKS).toArray();
        for (int round = 0; round < 20; round++) {
            owner.write(pair.ownerBase, pattern(round));
            Transfer transfer = reader.transport().read(local, all, remote, all, DONE);
            Await.until(
                    "release, without a poll",
                    LIMIT,
                    () -> {
                        pair.drive(new ArrayList<>());
                        return transfer.release();
                    },
                    () -> "refused");
            byte[] arrived = reader.read(pair.readerBase, BLOCKS * BLOCK_BYTES);
            assertThat(arrived).as("all data are there at the release").isEqualTo(pattern(round));
        }
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void aListThatWasClosedIsRefused() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        local.close();
        assertThatIllegalStateException()
                .isThrownBy(
                        () ->
                                reader.transport()
                                        .read(local, new int[] {0}, remote, new int[] {0}, DONE));
        remote.close();
        peer.close();
        assertThatIllegalStateException()
                .isThrownBy(
                        () ->
                                reader.transport()
                                        .prepareRemote(peer, List.of(pair.row(pair.ownerBase))));
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().notify(peer, DONE));
    }

    @Test
    void memoryThatWasDeregisteredIsNotOfferedToPeersAnyMore() {
        pair.ownerMemory.close();
        pair.ownerMemory.close();
        RemotePeer peer = pair.load();
        assertThatThrownBy(
                        () ->
                                reader.transport()
                                        .prepareRemote(peer, List.of(pair.row(pair.ownerBase))))
                .isInstanceOf(TransportException.class);
    }

    @Test
    void afterReRegistrationADroppedAndReloadedPeerReadsTheRightBytes() {
        RemotePeer peer = pair.load();
        for (int cycle = 0; cycle < 10; cycle++) {
            pair.assertReads(peer, pattern(1 + cycle));
            peer.close();
            pair.ownerMemory.close();
            owner.write(pair.ownerBase, pattern(2 + cycle));
            pair.ownerMemory = owner.transport().register(List.of(pair.range(pair.ownerBase)));
            peer = pair.load();
        }
        pair.assertReads(peer, pattern(11));
    }

    @Test
    void theReaderMayRenewItsOwnRegistration() {
        RemotePeer peer = pair.load();
        for (int cycle = 0; cycle < 10; cycle++) {
            reader.write(pair.readerBase, pattern(50 + cycle));
            pair.assertReads(peer, pattern(1));
            pair.readerMemory.close();
            pair.readerMemory = reader.transport().register(List.of(pair.range(pair.readerBase)));
        }
    }

    @Test
    void aReadFromAnAgentThatEndedFailsInBoundedTime() {
        RemotePeer peer = pair.load();
        pair.assertReads(peer, pattern(1));
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        owner.close();
        try {
            Transfer transfer =
                    reader.transport().read(local, new int[] {0}, remote, new int[] {0}, DONE);
            Await.until(
                    "a failed read",
                    LIMIT,
                    () -> {
                        reader.transport().messages();
                        return transfer.poll() instanceof TransferState.Failed;
                    },
                    transfer::poll);
            Await.until("release", LIMIT, transfer::release, () -> "refused");
        } catch (TransportException refused) {
            assertThat(refused).hasMessageContaining(peer.agentName());
        }
        Await.until(
                "a disconnected peer",
                LIMIT,
                () -> {
                    reader.transport().messages();
                    return !peer.isConnected();
                },
                () -> "connected");
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void closeEndsEverythingAndMayBeRepeated() {
        RemotePeer peer = pair.load();
        BlockList local = reader.transport().prepareLocal(List.of(pair.row(pair.readerBase)));
        BlockList remote =
                reader.transport().prepareRemote(peer, List.of(pair.row(pair.ownerBase)));
        reader.transport().read(local, new int[] {0}, remote, new int[] {0}, DONE);
        reader.transport().close();
        reader.transport().close();
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().metadata());
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().messages());
        assertThat(peer.isConnected()).isFalse();
        local.close();
        remote.close();
        peer.close();
        pair.readerMemory.close();
    }

    private Node track(Node node) {
        nodes.add(node);
        return node;
    }
}
