package dev.dormouse.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What mapped memory does when its owner takes it back, and when it does not. */
final class MappedModelTest {
    private static final int PAGE = 64;
    private static final int BYTES = 4 * PAGE;

    private long nowNanos = 1;
    private final ModelFabric fabric = new ModelFabric(() -> nowNanos, Addressing.MAPPED);
    private final ModelMemory ownerMemory = new ModelMemory(PAGE);
    private final ModelMemory readerMemory = new ModelMemory(PAGE);
    private final ModelTransport owner = fabric.open("owner", ownerMemory);
    private final ModelTransport reader = fabric.open("reader", readerMemory);
    private final long ownerBase = ownerMemory.allocate(BYTES);
    private final long readerBase = readerMemory.allocate(BYTES);
    private final Registration exported = owner.register(List.of(range(ownerBase)));
    private final Registration target = reader.register(List.of(range(readerBase)));
    private final RemotePeer peer = reader.load(owner.metadata());
    private final BlockList local = reader.prepareLocal(List.of(row(readerBase)));
    private final BlockList remote = reader.prepareRemote(peer, List.of(row(ownerBase)));

    @Test
    void anOldMappingKeepsPagesAndReadsTheirBytesWithoutAnError() {
        ownerMemory.write(ownerBase, filled(1));
        ownerMemory.unmap(ownerBase, BYTES);
        assertThat(ownerMemory.residentBytes()).as("nothing is returned").isEqualTo(BYTES);
        ownerMemory.map(ownerBase, BYTES);
        ownerMemory.write(ownerBase, filled(2));
        assertThat(ownerMemory.residentBytes()).as("it is there twice").isEqualTo(2 * BYTES);

        assertThat(post().poll()).isInstanceOf(TransferState.Done.class);
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(1));
    }

    @Test
    void aRevocationIsObeyedInItsTimeAndTheMemoryIsReturned() {
        reader.faults().setRevocationDelay(Duration.ofNanos(10));
        assertThat(exported.revoke()).containsExactly("agent reader");
        assertThat(peer.isConnected()).isTrue();
        nowNanos += 9;
        assertThat(exported.revoke()).hasSize(1);
        assertThat(post().poll()).isInstanceOf(TransferState.Done.class);
        nowNanos += 1;
        assertThat(exported.revoke()).isEmpty();
        exported.close();
        ownerMemory.unmap(ownerBase, BYTES);
        assertThat(ownerMemory.residentBytes()).isZero();
        assertThat(target.ranges()).hasSize(1);
        assertThat(peer.isConnected()).isFalse();
    }

    @Test
    void aReaderThatHangsKeepsTheMemoryUntilItGoesOnOrDies() {
        reader.faults().setHangs(true);
        nowNanos += Duration.ofDays(1).toNanos();
        assertThat(exported.revoke()).hasSize(1);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(exported::close)
                .withMessageContaining("agent reader");
        assertThat(post().poll()).isInstanceOf(TransferState.Done.class);
        fabric.kill("reader");
        assertThat(exported.revoke()).isEmpty();
        exported.close();
    }

    @Test
    void whatWasAskedOfAHangingReaderHappensWhenItGoesOn() {
        reader.faults().setHangs(true);
        assertThat(exported.revoke()).hasSize(1);
        exported.readmit();
        reader.faults().setHangs(false);
        assertThat(peer.isConnected()).isFalse();
        assertThat(exported.revoke()).isEmpty();
    }

    @Test
    void aTransferThatCannotBeBrokenOffKeepsTheMemory() {
        reader.faults().planRead(new ModelFault.NeverComplete());
        Transfer stuck = post();
        assertThat(exported.revoke()).hasSize(1);
        assertThat(peer.isConnected()).as("nothing begins any more").isFalse();
        reader.failStuckReads();
        assertThat(exported.revoke()).isEmpty();
        assertThat(stuck.poll())
                .isInstanceOfSatisfying(
                        TransferState.Failed.class,
                        failed -> assertThat(failed.reason()).contains("revoked"));
        assertThat(readerMemory.read(readerBase, BYTES)).isEqualTo(filled(ModelMemory.POISON));
    }

    private Transfer post() {
        int[] all = {0, 1, 2, 3};
        return reader.read(local, all, remote, all, new byte[] {'x'});
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
