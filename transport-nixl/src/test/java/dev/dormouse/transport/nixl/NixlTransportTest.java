package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.dormouse.nixl.NixlAgent;
import dev.dormouse.nixl.NixlAgentConfig;
import dev.dormouse.nixl.RemoteAgent;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What only the real library's limits bring about. */
final class NixlTransportTest {
    private static final int BYTES = 4_096;
    private static final Map<String, String> PARAMETERS =
            UcxSleepDefaults.applied(Map.of(), System.getenv());

    private final Arena arena = Arena.ofShared();
    private NixlTransport owner;
    private NixlTransport reader;
    private long address;

    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    @BeforeEach
    void open() {
        owner = NixlTransport.open("UCX", PARAMETERS);
        reader = NixlTransport.open("UCX", PARAMETERS);
        address = arena.allocate(2 * BYTES, BYTES).address();
    }

    @AfterEach
    void close() {
        reader.close();
        owner.close();
        arena.close();
    }

    @Test
    void aPeersRowsBeyondTheLimitAreATransportFailure() {
        owner.register(List.of(range(address)));
        RemotePeer peer = reader.load(owner.metadata());
        BlockRow huge = new BlockRow(address, 1, 1, 1 << 25, MemoryKind.DRAM, 0);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(() -> reader.prepareRemote(peer, List.of(huge)))
                .withMessageContaining("blocks");
        peer.close();
    }

    @Test
    void aPeerThatComesBackWithTheSameMetadataCostsNoDescriptors() {
        use(reader.load(owner.metadata()));
        int before = ProcessCounts.ofThisProcess().descriptors();
        for (int cycle = 0; cycle < 30; cycle++) {
            Registration memory = owner.register(List.of(range(address)));
            RemotePeer peer = reader.load(owner.metadata());
            use(peer);
            memory.close();
        }
        assertThat(ProcessCounts.ofThisProcess().descriptors()).isLessThan(before + 15);
    }

    @Test
    void aPeerThatComesBackWithOtherMetadataIsRefreshedAndCostsNoDescriptors() {
        use(reader.load(owner.metadata()));
        int before = ProcessCounts.ofThisProcess().descriptors();
        for (int cycle = 1; cycle <= 30; cycle++) {
            BlockRow row = new BlockRow(address, cycle, cycle, 1, MemoryKind.DRAM, 0);
            Registration memory =
                    owner.register(List.of(new MemoryRange(address, cycle, MemoryKind.DRAM, 0)));
            RemotePeer peer = reader.load(owner.metadata());
            reader.prepareRemote(peer, List.of(row)).close();
            reader.notify(peer, new byte[1]);
            peer.close();
            memory.close();
        }
        assertThat(ProcessCounts.ofThisProcess().descriptors()).isLessThan(before + 15);
    }

    @Test
    void aClosedPeerIsOfNoUseAlthoughItIsKept() {
        owner.register(List.of(range(address)));
        RemotePeer closed = reader.load(owner.metadata());
        closed.close();
        assertThat(closed.isConnected()).isFalse();
        assertThatIllegalStateException().isThrownBy(() -> reader.notify(closed, new byte[1]));
        assertThatIllegalStateException()
                .isThrownBy(() -> reader.prepareRemote(closed, List.of(row(address))));
        RemotePeer again = reader.load(owner.metadata());
        closed.close();
        assertThat(again.isConnected()).isTrue();
        use(again);
        TransportMetadata metadata = owner.metadata();
        reader.close();
        assertThatIllegalStateException().isThrownBy(() -> reader.load(metadata));
    }

    @Test
    void messagesThatAreTooLongAreDroppedAndCounted() {
        try (NixlAgent loud =
                NixlAgent.create(
                        NixlAgentConfig.builder("loud").maxNotificationBytes(2 << 20).build())) {
            loud.createBackend("UCX", PARAMETERS);
            RemoteAgent peer = loud.load(owner.metadata().agent());
            peer.notify(new byte[(1 << 20) + 1]);
            peer.notify(new byte[] {1});
            List<PeerMessage> got = new ArrayList<>();
            Await.until(
                    "the short message",
                    () -> {
                        loud.drainNotifications();
                        got.addAll(owner.messages());
                        return !got.isEmpty();
                    });
            assertThat(got).singleElement().extracting(m -> m.bytes().length).isEqualTo(1);
            assertThat(owner.rejectedMessages()).isEqualTo(1);
            assertThat(reader.rejectedMessages()).isZero();
        }
    }

    @Test
    void tooManyKeptPeersMakeRoomOldestFirst() {
        byte[] metadata = owner.metadata().agent();
        try (NixlAgent agent = NixlAgent.create(NixlAgentConfig.builder("keeper").build());
                NixlAgent other = NixlAgent.create(NixlAgentConfig.builder("other").build())) {
            agent.createBackend("UCX", PARAMETERS);
            other.createBackend("UCX", PARAMETERS);
            ParkedPeers parked = new ParkedPeers(1);
            RemoteAgent first = agent.load(metadata);
            parked.park(first, metadata);
            RemoteAgent second = agent.load(other.localMetadata());
            parked.park(second, other.localMetadata());

            assertThat(first.isOpen()).isFalse();
            assertThat(parked.take(metadata)).isNull();
            assertThat(parked.take(other.localMetadata())).isSameAs(second);
            assertThat(parked.named("other")).isNull();
        }
    }

    /** Prepares its blocks if it has any, sends it a message, and lets go of it. */
    private void use(RemotePeer peer) {
        try {
            BlockList blocks = reader.prepareRemote(peer, List.of(row(address)));
            blocks.close();
        } catch (TransportException e) {
            assertThat(e).hasMessageContaining("prepare");
        }
        reader.notify(peer, new byte[1]);
        peer.close();
    }

    private static MemoryRange range(long address) {
        return new MemoryRange(address, BYTES, MemoryKind.DRAM, 0);
    }

    private static BlockRow row(long address) {
        return new BlockRow(address, BYTES, BYTES, 1, MemoryKind.DRAM, 0);
    }
}
