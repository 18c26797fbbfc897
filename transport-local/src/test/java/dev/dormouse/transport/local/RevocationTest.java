package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Await;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How an owner takes its pages back, in one process. */
class RevocationTest {
    private static final int BYTES = 4 << 20;
    private static final int[] FIRST = {0};

    private final MemfdNode owner = new MemfdNode(SegmentAccess.READ, Limits.USUAL);
    private final MemfdNode reader = new MemfdNode();
    private final long ownerBase = owner.allocate(BYTES);
    private final long readerBase = reader.allocate(BYTES);
    private Registration memory = register(owner, ownerBase);

    {
        var _ = register(reader, readerBase);
    }

    @AfterEach
    void close() {
        reader.close();
        owner.close();
    }

    private static Registration register(MemfdNode node, long address) {
        return node.transport()
                .register(List.of(new MemoryRange(address, BYTES, MemoryKind.DRAM, 0)));
    }

    private static byte[] filled(int value) {
        byte[] bytes = new byte[BYTES];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }

    private RemotePeer load() {
        return reader.transport().load(owner.transport().metadata());
    }

    private static List<BlockRow> all(long address) {
        return List.of(new BlockRow(address, BYTES, BYTES, 1, MemoryKind.DRAM, 0));
    }

    private BlockList local() {
        return reader.transport().prepareLocal(all(readerBase));
    }

    private BlockList remote(RemotePeer peer) {
        return reader.transport().prepareRemote(peer, all(ownerBase));
    }

    private void awaitNobody() {
        Await.until("nobody holds it", () -> memory.revoke().isEmpty());
    }

    @Test
    void aCopyUnderWayIsAbandonedAndNothingFromAfterwardsIsCopied() {
        owner.write(ownerBase, filled(1));
        RemotePeer peer = load();
        BlockList local = local();
        BlockList remote = remote(peer);
        int[] often = new int[4096]; // seconds, if nothing ended it
        Transfer transfer = reader.transport().read(local, often, remote, often, new byte[] {1});

        awaitNobody();
        owner.write(ownerBase, filled(99));

        Await.until("its end", () -> !(transfer.poll() instanceof TransferState.InProgress));
        assertThat(transfer.poll())
                .isInstanceOfSatisfying(
                        TransferState.Failed.class,
                        failed -> assertThat(failed.reason()).contains("revoked by its owner"));
        assertThat(transfer.release()).isTrue();
        for (byte each : reader.read(readerBase, BYTES)) {
            assertThat(each).isNotEqualTo((byte) 99);
        }
        assertThat(owner.transport().messages()).isEmpty();
        memory.close();
    }

    @Test
    void theOwnerHearsOfItOnlyWhenNothingTouchesItsPages() throws Exception {
        PeerMapping mapping = ((LocalPeer) load()).mapping();
        List<CountDownLatch> goOn = List.of(new CountDownLatch(1), new CountDownLatch(1));
        CountDownLatch used = new CountDownLatch(goOn.size());
        List<Thread> users = goOn.stream().map(latch -> use(mapping, used, latch)).toList();
        used.await(); // both at once
        assertThat(memory.revoke()).hasSize(1);
        Await.until("the reader knows", mapping::isEnding);
        for (int user = 0; user < goOn.size(); user++) {
            for (int i = 0; i < 50; i++) {
                assertThat(memory.revoke()).hasSize(1);
                Thread.onSpinWait();
            }
            goOn.get(user).countDown();
            users.get(user).join();
        }
        awaitNobody();
        assertThat(mapping.use(() -> {})).isFalse();
    }

    private static Thread use(PeerMapping mapping, CountDownLatch used, CountDownLatch goOn) {
        Runnable action =
                () -> {
                    used.countDown();
                    Await.until("it may end", () -> goOn.getCount() == 0);
                };
        return Thread.ofPlatform().start(() -> mapping.use(action));
    }

    @Test
    void whatWasPreparedRefusesUseAndCanBeClosed() {
        RemotePeer peer = load();
        BlockList local = local();
        BlockList remote = remote(peer);
        awaitNobody();

        assertThat(peer.isConnected()).isFalse();
        for (Runnable use :
                List.<Runnable>of(
                        () -> reader.transport().read(local, FIRST, remote, FIRST, new byte[0]),
                        () -> remote(peer),
                        () -> reader.transport().notify(peer, new byte[1]))) {
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(use::run)
                    .withMessageContaining("revoked by its owner");
        }
        remote.close();
        local.close();
        peer.close();
        memory.close();
    }

    @Test
    void aRevokedRegistrationIsGivenToNobodyUntilItIsReadmitted() {
        RemotePeer peer = load();
        awaitNobody();
        peer.close();
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(this::load)
                .withMessageContaining("revoked by its owner");

        memory.readmit();

        owner.write(ownerBase, filled(5));
        assertThat(moved(load())).isInstanceOf(TransferState.Done.class);
        assertThat(reader.read(readerBase, BYTES)).isEqualTo(filled(5));
    }

    private TransferState moved(RemotePeer peer) {
        BlockList local = local();
        BlockList remote = remote(peer);
        Transfer transfer = reader.transport().read(local, FIRST, remote, FIRST, new byte[0]);
        Await.until("its end", () -> !(transfer.poll() instanceof TransferState.InProgress));
        TransferState end = transfer.poll();
        assertThat(transfer.release()).isTrue();
        local.close();
        remote.close();
        return end;
    }

    @Test
    void aRegistrationInUseStaysRegistered() {
        RemotePeer peer = load();
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(memory::close)
                .withMessageContaining(reader.transport().agentName())
                .withMessageContaining("process " + ProcessHandle.current().pid());
        assertThat(moved(peer)).isInstanceOf(TransferState.Done.class);
        peer.close();
        memory.close();
        assertThat(memory.revoke()).isEmpty();
    }

    @Test
    void metadataFromBeforeAReRegistrationIsRefused() {
        var before = owner.transport().metadata();
        memory.close();
        memory = register(owner, ownerBase);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(() -> reader.transport().load(before))
                .withMessageContaining("registered anew");
    }

    @Test
    void revokingOneRegistrationTakesAllThatAReaderHas() {
        long second = owner.allocate(BYTES);
        Registration other = register(owner, second);
        RemotePeer peer = load();
        assertThat(other.revoke()).hasSize(1);
        Await.until("nobody holds it", () -> other.revoke().isEmpty());
        assertThat(memory.revoke()).isEmpty();
        assertThat(peer.isConnected()).isFalse();
    }

    @Test
    void memoryToReadIsNotWritten() {
        RemotePeer peer = load();
        BlockList local = local();
        BlockList remote = remote(peer);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(
                        () -> reader.transport().write(local, FIRST, remote, FIRST, new byte[0]))
                .withMessageContaining("read only");
    }

    @Test
    void memoryThatCannotBeSharedIsNotRegistered() {
        try (LocalTransport none =
                LocalTransport.open(
                        LocalTransportOptions.of(
                                range -> {
                                    throw new IllegalStateException("asleep " + range);
                                }))) {
            MemoryRange range = new MemoryRange(4096, 4096, MemoryKind.DRAM, 0);
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(() -> none.register(List.of(range)))
                    .withMessageContaining("asleep");
            MemoryRange other = new MemoryRange(4096, 4096, MemoryKind.VRAM, 0);
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(() -> none.register(List.of(range, other)))
                    .withMessageContaining("of two kinds");
        }
    }

    /**
     * The owner's memory as the reader had it is revoked and registered anew, with other content.
     */
    private void wake(int content) {
        awaitNobody();
        memory.close();
        owner.write(ownerBase, filled(content));
        memory = register(owner, ownerBase);
    }

    private static void awaitMappings(long count) {
        Await.until(count + " mappings", () -> ProcessCounts.now().mappings() == count);
    }

    @Test
    void whatIsRegisteredAnewIsMappedByWhomItWasLoadedBeforeItIsLoaded() {
        long unmapped = ProcessCounts.now().mappings();
        RemotePeer peer = load();
        for (int wake = 1; wake <= 5; wake++) {
            if (wake % 2 == 0) {
                peer.close(); // before it is revoked; else behind
            }
            wake(wake);
            awaitMappings(unmapped + 1);
            assertThat(peer.isConnected()).isFalse();
            peer.close();
            peer = load();
            awaitMappings(unmapped + 1);
            assertThat(moved(peer)).isInstanceOf(TransferState.Done.class);
            assertThat(reader.read(readerBase, BYTES)).isEqualTo(filled(wake));
        }
    }

    @Test
    void whatIsMappedAndNotLoadedIsTakenBack() {
        long unmapped = ProcessCounts.now().mappings();
        load().close();
        wake(1);
        awaitMappings(unmapped + 1);
        var told = owner.transport().metadata();
        wake(2);
        assertThat(ProcessCounts.now().mappings()).isEqualTo(unmapped);
        assertThatExceptionOfType(MemoryWithdrawnException.class)
                .isThrownBy(() -> reader.transport().load(told));
        assertThat(moved(load())).isInstanceOf(TransferState.Done.class);
        assertThat(reader.read(readerBase, BYTES)).isEqualTo(filled(2));
    }

    @Test
    void whatIsMappedAndNotLoadedForLongIsGivenBack() {
        Limits hasty =
                new Limits(
                        Duration.ofSeconds(20),
                        Duration.ofSeconds(20),
                        16,
                        64,
                        Duration.ofMillis(50));
        ProcessCounts before = ProcessCounts.now();
        try (MemfdNode another = new MemfdNode(SegmentAccess.READ, hasty)) {
            long unmapped = ProcessCounts.now().mappings();
            another.transport().prepareLoad(owner.transport().metadata());
            awaitMappings(unmapped);
            Await.until("nobody is left who has to be asked", this::isClosedNow);
        }
        memory = register(owner, ownerBase);
        Await.until("as before", () -> ProcessCounts.now().equals(before));
    }

    private boolean isClosedNow() {
        try {
            memory.close();
            return true;
        } catch (TransportException e) {
            return false;
        }
    }

    @Test
    void aLoadFromOtherMetadataThanWhatIsMappedMapsThat() {
        long unmapped = ProcessCounts.now().mappings();
        var before = owner.transport().metadata();
        load().close();
        wake(1);
        awaitMappings(unmapped + 1);
        assertThatExceptionOfType(MemoryWithdrawnException.class)
                .isThrownBy(() -> reader.transport().load(before))
                .withMessageContaining("registered anew");
        reader.transport().prepareLoad(owner.transport().metadata());
        long second = owner.allocate(BYTES);
        owner.write(second, filled(7));
        var _ = register(owner, second);
        RemotePeer peer = load();
        BlockList local = local();
        BlockList remote = reader.transport().prepareRemote(peer, all(second));
        Transfer transfer = reader.transport().read(local, FIRST, remote, FIRST, new byte[0]);
        Await.until("its end", () -> !(transfer.poll() instanceof TransferState.InProgress));
        assertThat(transfer.release()).isTrue();
        assertThat(reader.read(readerBase, BYTES)).isEqualTo(filled(7));
    }

    @Test
    void whatEndsWithoutALoadLeavesNothing() {
        ProcessCounts before = ProcessCounts.now();
        try (MemfdNode another = new MemfdNode()) {
            another.transport().prepareLoad(owner.transport().metadata());
            another.transport().prepareLoad(owner.transport().metadata());
        }
        awaitNobody();
        try (MemfdNode another = new MemfdNode()) {
            another.transport().prepareLoad(owner.transport().metadata()); // is refused
            another.transport().close();
            another.transport().prepareLoad(owner.transport().metadata());
        }
        Await.until("as before", () -> ProcessCounts.now().equals(before));
    }

    @Test
    void cyclesLeaveNothingBehind() {
        load().close(); // the connection stays, and stands by
        memory.close();
        ProcessCounts before = ProcessCounts.now();
        for (int cycle = 0; cycle < 300; cycle++) {
            memory = register(owner, ownerBase);
            RemotePeer peer = load();
            if (cycle % 3 == 0) {
                assertThat(moved(peer)).isInstanceOf(TransferState.Done.class);
            }
            if (cycle % 2 == 0) {
                awaitNobody();
            }
            peer.close();
            memory.close();
        }
        Await.until("as before", () -> ProcessCounts.now().equals(before));
        for (int cycle = 0; cycle < 10; cycle++) {
            new MemfdNode().close();
        }
        assertThat(ProcessCounts.now()).isEqualTo(before);
    }
}
