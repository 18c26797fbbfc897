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
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What every {@link KvTransport} must do. A transport's own test class extends this and supplies
 * agents with memory. Both agents live in the test's process and are driven by its thread.
 */
public abstract class KvTransportContract extends RevocationContract {
    @ParameterizedTest
    @EnumSource
    void aTransferMovesExactlyTheNamedBlocks(TransferWay way) {
        byte[] source = pair.source(way);
        Seeded.forAll(
                20,
                random -> {
                    byte[] expected = pair.target(way);
                    int count = random.nextInt(1, BLOCKS + 1);
                    int[] here = distinct(random, count);
                    int[] there = distinct(random, count);
                    int[] from = way == TransferWay.READ ? there : here;
                    int[] to = way == TransferWay.READ ? here : there;
                    for (int i = 0; i < count; i++) {
                        System.arraycopy(
                                source,
                                from[i] * BLOCK_BYTES,
                                expected,
                                to[i] * BLOCK_BYTES,
                                BLOCK_BYTES);
                    }
                    TransferState.Done done = pair.finish(pair.lists().start(way, here, there));
                    assertThat(done.bytes()).isEqualTo((long) count * BLOCK_BYTES);
                    assertThat(done.descriptors()).isBetween(1L, (long) count);
                    assertThat(pair.target(way)).isEqualTo(expected);
                    assertThat(pair.source(way)).isEqualTo(source);
                });
    }

    @ParameterizedTest
    @EnumSource
    void rowsAreNumberedOneBehindTheOtherAndKeepTheirStride(TransferWay way) {
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
        ContractPair.Lists lists =
                new ContractPair.Lists(
                        reader.transport(),
                        reader.transport().prepareLocal(localRows),
                        reader.transport().prepareRemote(peer, remoteRows));
        assertThat(lists.local().size()).isEqualTo(8);
        assertThat(lists.remote().size()).isEqualTo(10);
        byte[] expected = pair.target(way);
        byte[] source = pair.source(way);
        for (int[] block :
                new int[][] {
                    {half + 4 * BLOCK_BYTES, half + 2 * half}, {2 * BLOCK_BYTES, 5 * BLOCK_BYTES}
                }) {
            int from = way == TransferWay.READ ? block[1] : block[0];
            int to = way == TransferWay.READ ? block[0] : block[1];
            System.arraycopy(source, from, expected, to, half);
        }

        pair.finish(lists.start(way, new int[] {7, 2}, new int[] {8, 5}));

        assertThat(pair.target(way)).isEqualTo(expected);
        lists.close();
        peer.close();
    }

    @ParameterizedTest
    @EnumSource
    void theAttachedMessageArrivesOnceAndWithTheSendersName(TransferWay way) {
        pair.finish(pair.lists().start(way, new int[] {3}, new int[] {3}));
        pair.driveABit();
        assertThat(pair.arrived)
                .containsExactly(new Message(reader.transport().agentName(), "r1:1"));
    }

    @Test
    void theWritersMessageDoesNotComeBeforeItsData() {
        int[] all = IntStream.range(0, BLOCKS).toArray();
        for (int round = 0; round < 50; round++) {
            byte[] content = pattern(100 + round);
            reader.write(pair.readerBase, content);
            Transfer transfer = pair.lists().start(TransferWay.WRITE, all, all);
            int before = pair.arrived.size();
            Await.until(
                    "the message",
                    LIMIT,
                    () -> {
                        TransferState _ = transfer.poll();
                        pair.drive();
                        return pair.arrived.size() > before;
                    },
                    transfer::poll);
            assertThat(pair.target(TransferWay.WRITE)).isEqualTo(content);
            Await.until("release", LIMIT, transfer::release, () -> "refused");
        }
    }

    @Test
    void messagesArriveInOrderAndWithoutATransferToo() {
        RemotePeer peer = pair.load();
        List<Message> expected = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            reader.transport().notify(peer, ("HB:" + i).getBytes(UTF_8));
            expected.add(new Message(reader.transport().agentName(), "HB:" + i));
        }
        Await.until(
                "20 messages",
                LIMIT,
                () -> {
                    pair.drive();
                    return pair.arrived.size() >= expected.size();
                },
                () -> pair.arrived);
        assertThat(pair.arrived).isEqualTo(expected);
        peer.close();
    }

    @Test
    void aLoadedAgentIsNotLoadedOnceMoreAndStaysUsable() {
        RemotePeer peer = pair.load();
        TransportMetadata metadata = owner.transport().metadata();
        assertThatExceptionOfType(PeerLoadedException.class)
                .isThrownBy(() -> reader.transport().load(metadata))
                .satisfies(e -> assertThat(e.agentName()).isEqualTo(peer.agentName()));
        pair.assertMoves(TransferWay.READ, peer);
        peer.close();
        peer.close();
        pair.assertMoves(TransferWay.READ, pair.load());
    }

    @Test
    void unusableMetadataIsRefusedAndHarmsNoLoadedPeer() {
        RemotePeer peer = pair.load();
        TransportMetadata good = track(open()).transport().metadata();
        for (TransportMetadata bad :
                List.of(
                        damaged(good, _ -> new byte[0]),
                        damaged(good, _ -> new byte[1]),
                        damaged(good, _ -> new byte[4096]),
                        damaged(good, _ -> "not metadata at all".getBytes(UTF_8)),
                        damaged(good, bytes -> Arrays.copyOf(bytes, bytes.length / 2)),
                        damaged(
                                good,
                                bytes -> Arrays.copyOf(bytes, Math.max(0, bytes.length - 1))))) {
            assertThatThrownBy(() -> reader.transport().load(bad))
                    .isInstanceOf(TransportException.class);
        }
        pair.assertMoves(TransferWay.READ, peer);
    }

    /** Both parts damaged, so that it does not matter which of them a transport reads. */
    private static TransportMetadata damaged(TransportMetadata good, UnaryOperator<byte[]> damage) {
        return new TransportMetadata(damage.apply(good.agent()), damage.apply(good.sameHost()));
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
        pair.assertMoves(TransferWay.READ, peer);
    }

    @ParameterizedTest
    @EnumSource
    void indicesThatDoNotPairOrDoNotExistAreRefused(TransferWay way) {
        byte[] before = pair.target(way);
        int[][][] bad = {
            {{}, {}},
            {{0}, {0, 1}},
            {{BLOCKS}, {0}},
            {{0}, {BLOCKS}},
            {{-1}, {0}},
            {{0}, {-1}},
            {{0}, {Integer.MAX_VALUE}}
        };
        for (int[][] indices : bad) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> pair.lists().start(way, indices[0], indices[1]));
        }
        assertThat(pair.target(way)).isEqualTo(before);
        pair.finish(pair.lists().start(way, new int[] {0}, new int[] {0}));
    }

    @ParameterizedTest
    @EnumSource
    void nothingIsClosedUnderWhatUsesIt(TransferWay way) {
        RemotePeer peer = pair.load();
        ContractPair.Lists lists = pair.prepare(peer);
        assertThatIllegalStateException().isThrownBy(pair.readerMemory::close);
        assertThatIllegalStateException().isThrownBy(peer::close);
        Transfer transfer = lists.start(way, new int[] {0}, new int[] {0});
        assertThatIllegalStateException().isThrownBy(lists.local()::close);
        assertThatIllegalStateException().isThrownBy(lists.remote()::close);
        pair.finish(transfer);
        assertThat(transfer.release()).isTrue();
        for (int twice = 0; twice < 2; twice++) {
            lists.close();
            peer.close();
            pair.readerMemory.close();
        }
        assertThatThrownBy(
                        () -> reader.transport().prepareLocal(List.of(pair.row(pair.readerBase))))
                .isInstanceOf(TransportException.class);
    }

    @ParameterizedTest
    @EnumSource
    void aTransferIsReleasedOnlyWhenItHasEnded(TransferWay way) {
        int[] all = IntStream.range(0, BLOCKS).toArray();
        for (int round = 0; round < 20; round++) {
            pair.fillSource(way, pattern(10 + round));
            Transfer transfer = pair.lists().start(way, all, all);
            Await.until(
                    "release, without a poll",
                    LIMIT,
                    () -> {
                        pair.drive();
                        return transfer.release();
                    },
                    () -> "refused");
            assertThat(pair.target(way))
                    .as("all data are there at the release")
                    .isEqualTo(pattern(10 + round));
        }
    }

    @ParameterizedTest
    @EnumSource
    void aListThatWasClosedIsRefused(TransferWay way) {
        RemotePeer peer = pair.load();
        ContractPair.Lists lists = pair.prepare(peer);
        lists.local().close();
        assertThatIllegalStateException()
                .isThrownBy(() -> lists.start(way, new int[] {0}, new int[] {0}));
        lists.close();
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

    @ParameterizedTest
    @EnumSource
    void afterReRegistrationADroppedAndReloadedPeerHasTheRightBytes(TransferWay way) {
        RemotePeer peer = pair.load();
        for (int cycle = 0; cycle < 10; cycle++) {
            pair.assertMoves(way, peer);
            peer.close();
            pair.closeOwnerMemory();
            owner.write(pair.ownerBase, pattern(2 + cycle));
            reader.write(pair.readerBase, pattern(60 + cycle));
            pair.ownerMemory = owner.transport().register(List.of(pair.range(pair.ownerBase)));
            peer = pair.load();
        }
        pair.assertMoves(way, peer);
    }

    @ParameterizedTest
    @EnumSource
    void theReaderMayRenewItsOwnRegistration(TransferWay way) {
        RemotePeer peer = pair.load();
        for (int cycle = 0; cycle < 10; cycle++) {
            owner.write(pair.ownerBase, pattern(2 + cycle));
            reader.write(pair.readerBase, pattern(50 + cycle));
            pair.assertMoves(way, peer);
            pair.readerMemory.close();
            pair.readerMemory = reader.transport().register(List.of(pair.range(pair.readerBase)));
        }
    }

    @ParameterizedTest
    @EnumSource
    void aTransferWithAnAgentThatEndedFailsInBoundedTime(TransferWay way) {
        RemotePeer peer = pair.load();
        pair.assertMoves(way, peer);
        ContractPair.Lists lists = pair.prepare(peer);
        owner.close();
        try {
            Transfer transfer = lists.start(way, new int[] {0}, new int[] {0});
            Await.until(
                    "a failed transfer",
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
        lists.close();
        peer.close();
    }

    @ParameterizedTest
    @EnumSource
    void closeEndsEverythingAndMayBeRepeated(TransferWay way) {
        RemotePeer peer = pair.load();
        ContractPair.Lists lists = pair.prepare(peer);
        lists.start(way, new int[] {0}, new int[] {0});
        reader.transport().close();
        reader.transport().close();
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().metadata());
        assertThatIllegalStateException().isThrownBy(() -> reader.transport().messages());
        assertThat(peer.isConnected()).isFalse();
        lists.close();
        peer.close();
        pair.readerMemory.close();
    }
}
