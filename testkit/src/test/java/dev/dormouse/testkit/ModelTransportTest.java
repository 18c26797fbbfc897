package dev.dormouse.testkit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What the model shows that no CPU transport shows: stale registrations, and planned faults. */
final class ModelTransportTest {
    private static final int PAGE = 64;
    private static final int BYTES = 4 * PAGE;

    private long nowNanos = 1;
    private final ModelFabric fabric = new ModelFabric(() -> nowNanos);
    private final ModelMemory ownerMemory = new ModelMemory(PAGE);
    private final ModelMemory readerMemory = new ModelMemory(PAGE);
    private final ModelTransport owner = fabric.open("owner", ownerMemory);
    private final ModelTransport reader = fabric.open("reader", readerMemory);
    private final long ownerBase = ownerMemory.allocate(BYTES);
    private final long readerBase = readerMemory.allocate(BYTES);
    private Registration ownerRegistration = owner.register(List.of(range(ownerBase)));
    private final Registration readerRegistration = reader.register(List.of(range(readerBase)));

    @Test
    void aStaleRegistrationOfTheOwnerMovesTheOldBytesWithoutAnError() {
        ownerMemory.write(ownerBase, filled(1));
        ownerMemory.unmap(ownerBase, BYTES);
        ownerMemory.map(ownerBase, BYTES);
        ownerMemory.write(ownerBase, filled(2));

        assertThat(readAll(reader.load(owner.metadata()))).isInstanceOf(TransferState.Done.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(1));
    }

    @Test
    void aStaleRegistrationOfTheReaderLetsNothingArrive() {
        ownerMemory.write(ownerBase, filled(1));
        readerMemory.unmap(readerBase, BYTES);
        readerMemory.map(readerBase, BYTES);

        assertThat(readAll(reader.load(owner.metadata()))).isInstanceOf(TransferState.Done.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(ModelMemory.POISON));
    }

    @Test
    void aPinnedPageStaysResidentUntilItIsDeregistered() {
        assertThat(ownerMemory.residentBytes()).isEqualTo(BYTES);
        ownerMemory.unmap(ownerBase, BYTES);
        assertThat(ownerMemory.residentBytes()).isEqualTo(BYTES);
        ownerMemory.map(ownerBase, BYTES);
        assertThat(ownerMemory.residentBytes()).isEqualTo(2 * BYTES);
        ownerRegistration.close();
        assertThat(ownerMemory.residentBytes()).isEqualTo(BYTES);
    }

    @Test
    void aKeyThatItsOwnerDroppedDisconnectsTheReaderUntilItLoadsAgain() {
        RemotePeer stale = reader.load(owner.metadata());
        ownerRegistration.close();
        ownerMemory.unmap(ownerBase, BYTES);
        ownerMemory.map(ownerBase, BYTES);
        ownerMemory.write(ownerBase, filled(2));
        ownerRegistration = owner.register(List.of(range(ownerBase)));

        assertThat(readAll(stale)).isInstanceOf(TransferState.Failed.class);
        assertThat(stale.isConnected()).isFalse();
        assertThatThrownBy(() -> readAll(stale)).isInstanceOf(TransportException.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(ModelMemory.POISON));

        stale.close();
        assertThat(readAll(reader.load(owner.metadata()))).isInstanceOf(TransferState.Done.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(2));
    }

    @Test
    void aRestartedAgentOfTheSameNameIsAnotherAgent() {
        RemotePeer old = reader.load(owner.metadata());
        fabric.kill("owner");
        ModelTransport restarted = fabric.open("owner", ownerMemory);
        restarted.register(List.of(range(ownerBase)));
        assertThatThrownBy(() -> readAll(old)).isInstanceOf(TransportException.class);
        old.close();
        ownerMemory.write(ownerBase, filled(3));
        readAll(reader.load(restarted.metadata()));
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(3));
    }

    @Test
    void dataAndMessageArriveOnlyWhenTheReadIsDue() {
        ownerMemory.write(ownerBase, filled(1));
        reader.faults().setReadDelay(Duration.ofNanos(100));
        owner.faults().setMessageDelay(Duration.ofNanos(7));
        Transfer transfer = post(reader.load(owner.metadata()));
        nowNanos += 99;
        assertThat(transfer.poll()).isInstanceOf(TransferState.InProgress.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(ModelMemory.POISON));
        nowNanos += 1;
        assertThat(transfer.poll()).isInstanceOf(TransferState.Done.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(1));
        nowNanos += 6;
        assertThat(owner.messages()).isEmpty();
        nowNanos += 1;
        assertThat(owner.messages()).hasSize(1);
    }

    @Test
    void virtualAddressingFollowsWhatTheOwnerMapsNow() {
        ModelFabric virtual = new ModelFabric(() -> nowNanos, Addressing.VIRTUAL);
        ModelMemory source = new ModelMemory(PAGE);
        ModelMemory sink = new ModelMemory(PAGE);
        ModelTransport holder = virtual.open("holder", source);
        ModelTransport taker = virtual.open("taker", sink);
        long from = source.allocate(BYTES);
        long to = sink.allocate(BYTES);
        Registration held = holder.register(List.of(range(from)));
        Registration _ = taker.register(List.of(range(to)));
        RemotePeer peer = taker.load(holder.metadata());
        BlockRow all = new BlockRow(from, BYTES, BYTES, 1, MemoryKind.DRAM, 0);
        BlockList remote = taker.prepareRemote(peer, List.of(all));
        BlockList local =
                taker.prepareLocal(List.of(new BlockRow(to, BYTES, BYTES, 1, MemoryKind.DRAM, 0)));
        held.close();
        source.unmap(from, BYTES);
        for (byte expected : new byte[] {0, 7}) {
            Transfer read =
                    taker.read(local, new int[] {0}, remote, new int[] {0}, new byte[] {'x'});
            assertThat(read.poll()).isInstanceOf(TransferState.Done.class);
            assertThat(read.release()).isTrue();
            assertThat(sink.read(to, BYTES)).isEqualTo(filled(expected));
            if (expected == 0) {
                source.map(from, BYTES);
                source.write(from, filled(7));
            }
        }
    }

    @Test
    void plannedFaultsHitTheReadsInOrder() {
        ownerMemory.write(ownerBase, filled(1));
        RemotePeer peer = reader.load(owner.metadata());
        reader.faults().planRead(new ModelFault.FailPost());
        reader.faults().planRead(new ModelFault.ThrowOnPoll());
        reader.faults().planRead(new ModelFault.FailHalfWay());
        reader.faults().planRead(new ModelFault.NeverComplete());
        reader.faults().planRead(new ModelFault.FailAndRefuseRelease(1));

        assertThatThrownBy(() -> post(peer)).isInstanceOf(TransportException.class);
        Transfer throwing = post(peer);
        assertThatThrownBy(throwing::poll).isInstanceOf(TransportException.class);

        assertThat(post(peer).poll()).isInstanceOf(TransferState.Failed.class);
        assertThat(readerMemory.read(readerBase, BYTES / 2))
                .isEqualTo(Arrays.copyOf(filled(1), BYTES / 2));
        assertThat(readerMemory.read(readerBase + BYTES / 2, BYTES / 2))
                .isEqualTo(Arrays.copyOf(filled(ModelMemory.POISON), BYTES / 2));

        Transfer endless = post(peer);
        nowNanos += Duration.ofDays(1).toNanos();
        assertThat(endless.poll()).isInstanceOf(TransferState.InProgress.class);
        assertThat(endless.release()).as("data may still come").isFalse();
        reader.failStuckReads();
        assertThat(endless.poll()).isInstanceOf(TransferState.Failed.class);
        assertThat(endless.release()).isTrue();

        Transfer clinging = post(peer);
        assertThat(clinging.poll()).isInstanceOf(TransferState.Failed.class);
        readerMemory.write(readerBase, filled(9));
        assertThat(clinging.release()).isFalse();
        assertThat(readerMemory.read(readerBase, BYTES)).as("late data").isEqualTo(filled(1));
        assertThat(clinging.release()).isTrue();
        assertThat(owner.messages()).isEmpty();
        assertThat(post(peer).poll()).isInstanceOf(TransferState.Done.class);
    }

    @Test
    void injectedMessagesArriveLikeOthers() {
        fabric.inject("owner", new PeerMessage("stranger", "HB:x".getBytes(UTF_8)));
        assertThat(owner.messages())
                .singleElement()
                .satisfies(message -> assertThat(message.agentName()).isEqualTo("stranger"));
        assertThat(owner.messages()).isEmpty();
    }

    @Test
    void countsReturnToZeroWhenEverythingIsClosed() {
        post(reader.load(owner.metadata()));
        assertThat(reader.counts()).isEqualTo(new ModelCounts(1, 2, 1, 1));
        reader.close();
        assertThat(reader.counts()).isEqualTo(ModelCounts.NONE);
        readerRegistration.close();
        readerMemory.unmap(readerBase, BYTES);
        assertThat(readerMemory.residentBytes()).isZero();
    }

    private Transfer post(RemotePeer peer) {
        return post(peer, new ArrayList<>());
    }

    private Transfer post(RemotePeer peer, List<BlockList> lists) {
        BlockList local = reader.prepareLocal(List.of(row(readerBase)));
        BlockList remote = reader.prepareRemote(peer, List.of(row(ownerBase)));
        lists.addAll(List.of(local, remote));
        int[] all = {0, 1, 2, 3};
        return reader.read(local, all, remote, all, "x:1".getBytes(UTF_8));
    }

    private TransferState readAll(RemotePeer peer) {
        List<BlockList> lists = new ArrayList<>();
        try {
            Transfer transfer = post(peer, lists);
            TransferState end = transfer.poll();
            assertThat(transfer.release()).isTrue();
            return end;
        } finally {
            lists.forEach(BlockList::close);
        }
    }

    private static MemoryRange range(long address) {
        return new MemoryRange(address, BYTES, MemoryKind.DRAM, 0);
    }

    private static BlockRow row(long address) {
        return new BlockRow(address, PAGE, PAGE, 4, MemoryKind.DRAM, 0);
    }

    private static byte[] filled(int value) {
        byte[] bytes = new byte[BYTES];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }
}
