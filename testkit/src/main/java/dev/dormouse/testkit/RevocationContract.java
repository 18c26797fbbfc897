package dev.dormouse.testkit;

import static dev.dormouse.testkit.ContractPair.BLOCKS;
import static dev.dormouse.testkit.ContractPair.LIMIT;
import static dev.dormouse.testkit.ContractPair.pattern;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a transport must do when an owner takes its memory back from peers. */
abstract class RevocationContract extends ContractFixture {
    private static final int[] ALL = IntStream.range(0, BLOCKS).toArray();

    /**
     * Whether loaded peers hold the owner's memory by themselves, so that a revocation must take it
     * from them.
     */
    protected boolean peersHoldMemory() {
        return false;
    }

    @ParameterizedTest
    @EnumSource
    void memoryIsClosedOnceNobodyIsLeftWhomItIsRevokedFrom(TransferWay way) {
        RemotePeer peer = pair.load();
        pair.assertMoves(way, peer);
        ContractPair.Lists lists = pair.prepare(peer);
        pair.revokeOwnerMemory(); // the reader's thread does nothing meanwhile
        pair.ownerMemory.close();
        lists.close();
        peer.close();
    }

    @Test
    void nothingIsClosedThatPeersHold() {
        assumeTrue(peersHoldMemory(), "peers hold nothing");
        RemotePeer peer = pair.load();
        assertThatThrownBy(pair.ownerMemory::close).isInstanceOf(TransportException.class);
        pair.assertMoves(TransferWay.READ, peer);
        assertThat(pair.ownerMemory.revoke()).isNotNull();
        pair.revokeOwnerMemory();
        pair.ownerMemory.close();
    }

    @ParameterizedTest
    @EnumSource
    void aRevokedPeerIsNotConnectedAndItsTransfersFailWithAReason(TransferWay way) {
        assumeTrue(peersHoldMemory(), "peers hold nothing");
        RemotePeer peer = pair.load();
        ContractPair.Lists lists = pair.prepare(peer);
        byte[] before = pair.target(way);
        pair.revokeOwnerMemory();
        assertThat(peer.isConnected()).isFalse();
        try {
            Transfer transfer = lists.start(way, ALL, ALL);
            TransferState end = end(transfer);
            assertThat(end).isInstanceOf(TransferState.Failed.class);
            assertThat(((TransferState.Failed) end).reason()).contains("revoked");
        } catch (TransportException refused) {
            assertThat(refused).hasMessageContaining("revoked");
        }
        assertThat(pair.target(way)).isEqualTo(before);
        assertThatThrownBy(() -> reader.transport().notify(peer, ContractPair.DONE))
                .isInstanceOf(TransportException.class);
    }

    @ParameterizedTest
    @EnumSource
    void aReaderLoadsAgainFromTheSameMetadataWhenItIsReadmitted(TransferWay way) {
        TransportMetadata metadata = owner.transport().metadata();
        RemotePeer peer = reader.transport().load(metadata);
        for (int round = 0; round < 5; round++) {
            pair.revokeOwnerMemory();
            peer.close();
            if (peersHoldMemory()) {
                assertThatThrownBy(() -> reader.transport().load(metadata))
                        .isInstanceOf(MemoryWithdrawnException.class)
                        .hasMessageContaining("revoked");
            }
            pair.ownerMemory.readmit();
            peer = reader.transport().load(metadata);
            owner.write(pair.ownerBase, pattern(20 + round));
            reader.write(pair.readerBase, pattern(40 + round));
            pair.assertMoves(way, peer);
        }
        assertThat(owner.transport().metadata()).isEqualTo(metadata);
    }

    @ParameterizedTest
    @EnumSource
    void aReaderGetsWhatItsOwnerRegisteredLast(TransferWay way) {
        for (int wake = 0; wake < 10; wake++) {
            TransportMetadata before = owner.transport().metadata();
            RemotePeer peer = pair.load();
            pair.fillSource(way, pattern(60 + wake));
            pair.assertMoves(way, peer);
            if (wake % 2 == 0) {
                peer.close(); // before it is revoked, as when a reader is asked beforehand
            }
            pair.closeOwnerMemory();
            pair.ownerMemory = owner.transport().register(List.of(pair.range(pair.ownerBase)));
            if (wake % 3 == 0) { // what it was given before its load is taken back as well
                pair.closeOwnerMemory();
                pair.ownerMemory = owner.transport().register(List.of(pair.range(pair.ownerBase)));
            }
            peer.close();
            if (peersHoldMemory()) {
                assertThatThrownBy(() -> reader.transport().load(before))
                        .isInstanceOf(MemoryWithdrawnException.class);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void aPreparedLoadGivesWhatALoadGives(TransferWay way) {
        for (int round = 0; round < 5; round++) {
            reader.transport().prepareLoad(owner.transport().metadata());
            RemotePeer peer = pair.load();
            reader.transport().prepareLoad(owner.transport().metadata());
            pair.fillSource(way, pattern(80 + round));
            pair.assertMoves(way, peer);
            peer.close();
        }
    }

    @Test
    void whatWasPreparedAndNotLoadedIsTakenBack() {
        TransportMetadata metadata = owner.transport().metadata();
        reader.transport().prepareLoad(metadata);
        pair.closeOwnerMemory();
        reader.transport().prepareLoad(metadata);
        if (peersHoldMemory()) {
            assertThatThrownBy(() -> reader.transport().load(metadata))
                    .isInstanceOf(MemoryWithdrawnException.class);
        }
        pair.ownerMemory = owner.transport().register(List.of(pair.range(pair.ownerBase)));
        pair.assertMoves(TransferWay.READ, pair.load());
    }

    @Test
    void preparingALoadOfNonsenseDoesNothing() {
        reader.transport().prepareLoad(new TransportMetadata(new byte[] {1, 2}, new byte[] {3}));
        reader.transport().prepareLoad(new TransportMetadata(new byte[0], new byte[0]));
        pair.assertMoves(TransferWay.READ, pair.load());
    }

    @ParameterizedTest
    @EnumSource
    void aTransferUnderARevocationHasEndedBeforeNobodyIsLeft(TransferWay way) {
        assumeTrue(peersHoldMemory(), "peers hold nothing");
        byte[] blank = new byte[pattern(0).length];
        for (int round = 0; round < 20; round++) {
            byte[] content = pattern(10 + round);
            pair.fillSource(way, content);
            RemotePeer peer = pair.load();
            ContractPair.Lists lists = pair.prepare(peer);
            Transfer transfer = lists.start(way, ALL, ALL);
            pair.revokeOwnerMemory();
            pair.fillSource(way, blank);
            byte[] after = pair.target(way);
            if (end(transfer) instanceof TransferState.Done) {
                assertThat(pair.target(way)).isEqualTo(content);
            }
            assertThat(pair.target(way)).as("nothing moves any more").isEqualTo(after);
            lists.close();
            peer.close();
            pair.ownerMemory.readmit();
        }
    }

    @Test
    void theOwnersOwnTransfersGoOnWhileItsMemoryIsRevoked() {
        pair.revokeOwnerMemory();
        RemotePeer peer = owner.transport().load(reader.transport().metadata());
        ContractPair.Lists lists =
                new ContractPair.Lists(
                        owner.transport(),
                        owner.transport().prepareLocal(List.of(pair.row(pair.ownerBase))),
                        owner.transport().prepareRemote(peer, List.of(pair.row(pair.readerBase))));
        Transfer transfer = lists.start(TransferWay.READ, ALL, ALL);
        assertThat(end(transfer)).isInstanceOf(TransferState.Done.class);
        assertThat(pair.source(TransferWay.READ)).isEqualTo(pair.target(TransferWay.READ));
        lists.close();
        peer.close();
    }

    @Test
    void revokingWithoutPeersFindsNobody() {
        assertThat(pair.ownerMemory.revoke()).isEmpty();
        pair.ownerMemory.readmit();
        pair.assertMoves(TransferWay.READ, pair.load());
    }

    @Test
    void aReaderThatEndsHoldsNothing() {
        RemotePeer _ = pair.load();
        reader.close();
        pair.revokeOwnerMemory();
        pair.ownerMemory.close();
    }

    private TransferState end(Transfer transfer) {
        Await.until(
                "the transfer's end",
                LIMIT,
                () -> {
                    pair.drive();
                    return !(transfer.poll() instanceof TransferState.InProgress);
                },
                transfer::poll);
        TransferState end = transfer.poll();
        Await.until("release", LIMIT, transfer::release, () -> "refused");
        return end;
    }
}
