package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFabric;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.PeerLoadedException;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Route;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which way is taken, and what becomes of the other one. */
final class AutoTransportTest {
    private static final int BYTES = 256;

    private final ModelFabric far = new ModelFabric(System::nanoTime);
    private final ModelFabric host = new ModelFabric(System::nanoTime, Addressing.MAPPED);
    private final ModelFabric otherHost = new ModelFabric(System::nanoTime, Addressing.MAPPED);
    private final AutoNode owner = AutoNode.open(host, far, "owner");
    private final AutoNode reader = AutoNode.open(host, far, "reader");
    private final long ownerBase = owner.allocate(BYTES);
    private final long readerBase = reader.allocate(BYTES);
    private final Registration held = owner.transport().register(List.of(range(ownerBase)));
    private final Registration target = reader.transport().register(List.of(range(readerBase)));

    @Test
    void theNearWayIsTakenWhereItLeadsAndNothingIsPostedOnTheOther() {
        RemotePeer peer = reader.transport().load(owner.transport().metadata());
        assertThat(peer.route()).isEqualTo(Route.direct("mapped-model"));
        assertThat(read(peer)).isInstanceOf(TransferState.Done.class);
        assertThat(reader.near().readsPosted()).isEqualTo(1);
        assertThat(reader.far().readsPosted()).isZero();
        assertThat(reader.far().counts().peers()).isZero();
        assertThat(owner.transport().messages())
                .extracting(PeerMessage::agentName)
                .containsExactly("reader");
        assertThat(target.ranges()).hasSize(1);
    }

    @Test
    void aPeerOfAnotherHostIsReachedOverTheFarWayAndTheRouteSaysWhy() {
        AutoNode stranger = AutoNode.open(otherHost, far, "stranger");
        Registration _ = stranger.transport().register(List.of(range(stranger.allocate(BYTES))));
        RemotePeer peer = reader.transport().load(stranger.transport().metadata());
        assertThat(peer.route().transport()).isEqualTo("model");
        assertThat(peer.route().detour()).startsWith("not mapped-model: load peer stranger");
        reader.transport().notify(peer, new byte[] {'x'});
        assertThat(stranger.transport().messages()).hasSize(1);
    }

    @Test
    void aPeerThatHasNoNearWayIsReachedOverTheFarOne() {
        ModelMemory memory = new ModelMemory(64);
        KvTransport plain = far.open("plain", memory);
        Registration _ = plain.register(List.of(range(memory.allocate(BYTES))));
        RemotePeer peer = reader.transport().load(plain.metadata());
        assertThat(peer.route())
                .hasToString("model (not mapped-model: the peer does not offer it)");
    }

    @Test
    void aPeerWithoutAFarWayThatIsOnAnotherHostIsRefusedWithTheReason() {
        ModelMemory memory = new ModelMemory(64);
        KvTransport secluded = otherHost.open("secluded", memory);
        TransportMetadata metadata = secluded.metadata();
        assertThatThrownBy(() -> reader.transport().load(metadata))
                .isInstanceOf(TransportException.class)
                .hasMessageContaining("secluded");
    }

    @Test
    void memoryThatIsTakenBackIsNotFetchedOverTheFarWay() {
        TransportMetadata metadata = owner.transport().metadata();
        assertThat(held.revoke()).isEmpty();
        assertThatExceptionOfType(MemoryWithdrawnException.class)
                .isThrownBy(() -> reader.transport().load(metadata));
        assertThat(reader.far().counts().peers()).isZero();
    }

    @Test
    void anAgentIsLoadedOnceWhateverTheWay() {
        TransportMetadata both = owner.transport().metadata();
        TransportMetadata farOnly = TransportMetadata.ofAgent(both.agent());
        RemotePeer peer = reader.transport().load(farOnly);
        assertThatExceptionOfType(PeerLoadedException.class)
                .isThrownBy(() -> reader.transport().load(both));
        assertThat(reader.near().counts().peers()).as("nothing is left mapped").isZero();
        peer.close();
        peer = reader.transport().load(both);
        assertThatExceptionOfType(PeerLoadedException.class)
                .isThrownBy(() -> reader.transport().load(farOnly));
        assertThat(read(peer)).isInstanceOf(TransferState.Done.class);
    }

    @Test
    void aRegistrationThatOneWayRefusesIsUndoneOnTheOther() {
        ModelCounts before = owner.near().counts();
        owner.far().faults().failRegistrations(1);
        long more = owner.allocate(BYTES);
        assertThatThrownBy(() -> owner.transport().register(List.of(range(more))))
                .isInstanceOf(TransportException.class);
        assertThat(owner.near().counts()).isEqualTo(before);
        owner.near().faults().failRegistrations(1);
        assertThatThrownBy(() -> owner.transport().register(List.of(range(more))))
                .isInstanceOf(TransportException.class);
        assertThat(owner.far().counts()).isEqualTo(before);
    }

    @Test
    void aDeregistrationThatOneWayRefusesLeavesTheMemoryRegisteredOnBoth() {
        owner.far().faults().failDeregistrations(1);
        assertThatThrownBy(held::close).isInstanceOf(TransportException.class);
        RemotePeer peer = reader.transport().load(owner.transport().metadata());
        assertThat(peer.route().transport()).isEqualTo("mapped-model");
        assertThat(read(peer)).isInstanceOf(TransferState.Done.class);
        peer.close();
        held.close();
        assertThat(owner.near().counts()).isEqualTo(ModelCounts.NONE);
        assertThat(owner.far().counts()).isEqualTo(ModelCounts.NONE);
    }

    @Test
    void aListThatOneWayCannotPrepareIsUndoneOnTheOther() {
        ModelCounts before = reader.near().counts();
        reader.far().faults().failPreparations(1);
        assertThatThrownBy(() -> reader.transport().prepareLocal(List.of(row(readerBase))))
                .isInstanceOf(TransportException.class);
        assertThat(reader.near().counts()).isEqualTo(before);
    }

    @Test
    void whatAPeerCallsItselfCannotForgeALineOfTheLog() {
        AutoNode stranger = AutoNode.open(otherHost, far, "x\nWARN " + "y".repeat(400));
        RemotePeer peer = reader.transport().load(stranger.transport().metadata());
        assertThat(peer.route().detour()).doesNotContain("\n").hasSizeLessThan(310);
    }

    @Test
    void bothWaysMustHaveOneName() {
        ModelMemory memory = new ModelMemory(64);
        KvTransport one = host.open("one", memory);
        KvTransport two = far.open("two", memory);
        assertThatIllegalArgumentException().isThrownBy(() -> new AutoTransport(one, two));
    }

    private TransferState read(RemotePeer peer) {
        BlockList here = reader.transport().prepareLocal(List.of(row(readerBase)));
        BlockList there = reader.transport().prepareRemote(peer, List.of(row(ownerBase)));
        Transfer transfer =
                reader.transport()
                        .read(here, new int[] {0}, there, new int[] {0}, new byte[] {'x'});
        TransferState end = transfer.poll();
        assertThat(transfer.release()).isTrue();
        here.close();
        there.close();
        return end;
    }

    private static MemoryRange range(long address) {
        return new MemoryRange(address, BYTES, MemoryKind.DRAM, 0);
    }

    private static BlockRow row(long address) {
        return new BlockRow(address, BYTES, BYTES, 1, MemoryKind.DRAM, 0);
    }
}
