package dev.dormouse.testkit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What every {@link KvTransport} must do. A transport's own test class extends this and supplies
 * agents with memory. Both agents live in the test's process and are driven by its thread.
 */
public abstract class KvTransportContract {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int BLOCK_BYTES = 256;
    private static final int BLOCKS = 16;
    private static final byte[] DONE = {'r', '1', ':', '1'};

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
    private Node owner;
    private Node reader;
    private long ownerBase;
    private long readerBase;
    private Registration ownerMemory;
    private Registration readerMemory;

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
        ownerBase = owner.allocate(BLOCKS * BLOCK_BYTES);
        readerBase = reader.allocate(BLOCKS * BLOCK_BYTES);
        owner.write(ownerBase, pattern(1));
        reader.write(readerBase, pattern(2));
        ownerMemory = owner.transport().register(List.of(range(ownerBase)));
        readerMemory = reader.transport().register(List.of(range(readerBase)));
    }

    @AfterEach
    void closeAll() {
        nodes.reversed().forEach(Node::close);
        nodes.clear();
    }

    @Test
    void readMovesExactlyTheNamedBlocks() {
        RemotePeer peer = load();
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        byte[] source = pattern(1);
        Seeded.forAll(
                20,
                random -> {
                    byte[] expected = reader.read(readerBase, BLOCKS * BLOCK_BYTES);
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
                    TransferState.Done done = readFully(local, to, remote, from);
                    assertThat(done.bytes()).isEqualTo((long) count * BLOCK_BYTES);
                    assertThat(done.descriptors()).isBetween(1L, (long) count);
                    assertThat(reader.read(readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(expected);
                    assertThat(owner.read(ownerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(source);
                });
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void rowsAreNumberedOneBehindTheOtherAndKeepTheirStride() {
        RemotePeer peer = load();
        int half = BLOCK_BYTES / 2;
        List<BlockRow> localRows =
                List.of(
                        new BlockRow(readerBase, half, BLOCK_BYTES, 3, memoryKind(), 0),
                        new BlockRow(readerBase + half, half, BLOCK_BYTES, 5, memoryKind(), 0));
        List<BlockRow> remoteRows =
                List.of(
                        new BlockRow(ownerBase, half, BLOCK_BYTES, 6, memoryKind(), 0),
                        new BlockRow(ownerBase + half, half, half, 4, memoryKind(), 0));
        BlockList local = reader.transport().prepareLocal(localRows);
        BlockList remote = reader.transport().prepareRemote(peer, remoteRows);
        assertThat(local.size()).isEqualTo(8);
        assertThat(remote.size()).isEqualTo(10);
        byte[] before = reader.read(readerBase, BLOCKS * BLOCK_BYTES);
        byte[] source = pattern(1);
        System.arraycopy(source, half + 2 * half, before, half + 4 * BLOCK_BYTES, half);
        System.arraycopy(source, 5 * BLOCK_BYTES, before, 2 * BLOCK_BYTES, half);

        readFully(local, new int[] {7, 2}, remote, new int[] {8, 5});

        assertThat(reader.read(readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(before);
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void theAttachedMessageArrivesOnceAndWithTheSendersName() {
        RemotePeer peer = load();
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        Transfer transfer =
                reader.transport().read(local, new int[] {0}, remote, new int[] {3}, DONE);
        List<Message> arrived = new ArrayList<>();
        Await.until(
                "the read's end and its message",
                LIMIT,
                () -> {
                    drive(arrived);
                    return transfer.poll() instanceof TransferState.Done && !arrived.isEmpty();
                },
                () -> transfer.poll() + " " + arrived);
        driveABit(arrived);
        assertThat(arrived).containsExactly(new Message(reader.transport().agentName(), "r1:1"));
        assertThat(reader.read(readerBase, BLOCK_BYTES))
                .isEqualTo(Arrays.copyOfRange(pattern(1), 3 * BLOCK_BYTES, 4 * BLOCK_BYTES));
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        local.close();
        remote.close();
        peer.close();
    }

    @Test
    void messagesArriveInOrderAndWithoutAReadToo() {
        RemotePeer peer = load();
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
                    drive(arrived);
                    return arrived.size() >= expected.size();
                },
                () -> arrived);
        assertThat(arrived).isEqualTo(expected);
        peer.close();
    }

    @Test
    void aLoadedAgentIsNotLoadedOnceMoreAndStaysUsable() {
        RemotePeer peer = load();
        byte[] metadata = owner.transport().metadata();
        assertThatThrownBy(() -> reader.transport().load(metadata))
                .isInstanceOf(TransportException.class);
        assertReads(peer, pattern(1));
        peer.close();
        peer.close();
        assertReads(load(), pattern(1));
    }

    @Test
    void unusableMetadataIsRefusedAndHarmsNoLoadedPeer() {
        RemotePeer peer = load();
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
        assertReads(peer, pattern(1));
    }

    @Test
    void blocksOutsideTheRegisteredMemoryAreRefused() {
        RemotePeer peer = load();
        long end = BLOCKS * BLOCK_BYTES;
        for (long offset : new long[] {-BLOCK_BYTES, end - 1, end, 1L << 40}) {
            BlockRow behind =
                    new BlockRow(ownerBase + offset, BLOCK_BYTES, BLOCK_BYTES, 1, memoryKind(), 0);
            assertThatThrownBy(() -> reader.transport().prepareRemote(peer, List.of(behind)))
                    .isInstanceOf(TransportException.class);
        }
        BlockRow unregistered =
                new BlockRow(
                        reader.allocate(BLOCK_BYTES), BLOCK_BYTES, BLOCK_BYTES, 1, memoryKind(), 0);
        assertThatThrownBy(() -> reader.transport().prepareLocal(List.of(unregistered)))
                .isInstanceOf(TransportException.class);
        assertReads(peer, pattern(1));
    }

    @Test
    void indicesThatDoNotPairOrDoNotExistAreRefused() {
        RemotePeer peer = load();
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        byte[] before = reader.read(readerBase, BLOCKS * BLOCK_BYTES);
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
        assertThat(reader.read(readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(before);
        readFully(local, new int[] {0}, remote, new int[] {0});
        local.close();
        remote.close();
    }

    @Test
    void nothingIsClosedUnderWhatUsesIt() {
        RemotePeer peer = load();
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        assertThatIllegalStateException().isThrownBy(readerMemory::close);
        assertThatIllegalStateException().isThrownBy(peer::close);
        Transfer transfer =
                reader.transport().read(local, new int[] {0}, remote, new int[] {0}, DONE);
        assertThatIllegalStateException().isThrownBy(local::close);
        assertThatIllegalStateException().isThrownBy(remote::close);
        awaitDone(transfer);
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        assertThat(transfer.release()).isTrue();
        for (int twice = 0; twice < 2; twice++) {
            local.close();
            remote.close();
            peer.close();
            readerMemory.close();
        }
        assertThatThrownBy(() -> reader.transport().prepareLocal(List.of(row(readerBase))))
                .isInstanceOf(TransportException.class);
    }

    @Test
    void aListThatWasClosedIsRefused() {
        RemotePeer peer = load();
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        local.close();
        assertThatIllegalStateException()
                .isThrownBy(
                        () ->
                                reader.transport()
                                        .read(local, new int[] {0}, remote, new int[] {0}, DONE));
        remote.close();
        peer.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> reader.transport().prepareRemote(peer, List.of(row(ownerBase))));
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().notify(peer, DONE));
    }

    @Test
    void memoryThatWasDeregisteredIsNotOfferedToPeersAnyMore() {
        ownerMemory.close();
        ownerMemory.close();
        RemotePeer peer = load();
        assertThatThrownBy(() -> reader.transport().prepareRemote(peer, List.of(row(ownerBase))))
                .isInstanceOf(TransportException.class);
    }

    @Test
    void afterReRegistrationADroppedAndReloadedPeerReadsTheRightBytes() {
        RemotePeer peer = load();
        for (int cycle = 0; cycle < 10; cycle++) {
            assertReads(peer, pattern(1 + cycle));
            peer.close();
            ownerMemory.close();
            owner.write(ownerBase, pattern(2 + cycle));
            ownerMemory = owner.transport().register(List.of(range(ownerBase)));
            peer = load();
        }
        assertReads(peer, pattern(11));
    }

    @Test
    void theReaderMayRenewItsOwnRegistration() {
        RemotePeer peer = load();
        for (int cycle = 0; cycle < 10; cycle++) {
            reader.write(readerBase, pattern(50 + cycle));
            assertReads(peer, pattern(1));
            readerMemory.close();
            readerMemory = reader.transport().register(List.of(range(readerBase)));
        }
    }

    @Test
    void aReadFromAnAgentThatEndedFailsInBoundedTime() {
        RemotePeer peer = load();
        assertReads(peer, pattern(1));
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
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
        RemotePeer peer = load();
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        reader.transport().read(local, new int[] {0}, remote, new int[] {0}, DONE);
        reader.transport().close();
        reader.transport().close();
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().metadata());
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().messages());
        assertThat(peer.isConnected()).isFalse();
        local.close();
        remote.close();
        peer.close();
        readerMemory.close();
    }

    /** A message's content, comparable. */
    private record Message(String sender, String text) {}

    private void drive(List<Message> ownersMessages) {
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

    private void driveABit(List<Message> ownersMessages) {
        for (int i = 0; i < 100; i++) {
            drive(ownersMessages);
        }
    }

    private TransferState.Done readFully(BlockList local, int[] to, BlockList remote, int[] from) {
        Transfer transfer = reader.transport().read(local, to, remote, from, DONE);
        TransferState.Done done = awaitDone(transfer);
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        return done;
    }

    private TransferState.Done awaitDone(Transfer transfer) {
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
    private void assertReads(RemotePeer peer, byte[] expected) {
        BlockList local = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        int[] all = new int[BLOCKS];
        Arrays.setAll(all, i -> i);
        readFully(local, all, remote, all);
        local.close();
        remote.close();
        assertThat(reader.read(readerBase, BLOCKS * BLOCK_BYTES)).isEqualTo(expected);
    }

    private RemotePeer load() {
        RemotePeer peer = reader.transport().load(owner.transport().metadata());
        assertThat(peer.agentName()).isEqualTo(owner.transport().agentName());
        assertThat(peer.isConnected()).isTrue();
        return peer;
    }

    private Node track(Node node) {
        nodes.add(node);
        return node;
    }

    private MemoryRange range(long address) {
        return new MemoryRange(address, BLOCKS * BLOCK_BYTES, memoryKind(), 0);
    }

    private BlockRow row(long address) {
        return new BlockRow(address, BLOCK_BYTES, BLOCK_BYTES, BLOCKS, memoryKind(), 0);
    }

    private static byte[] pattern(int seed) {
        byte[] bytes = new byte[BLOCKS * BLOCK_BYTES];
        new SplittableRandom(seed).nextBytes(bytes);
        return bytes;
    }

    private static int[] distinct(SplittableRandom random, int count) {
        return random.ints(0, BLOCKS).distinct().limit(count).toArray();
    }
}
