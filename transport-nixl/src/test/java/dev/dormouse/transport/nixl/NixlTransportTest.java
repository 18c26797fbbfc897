package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Natives;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What only the real library's limits bring about. */
final class NixlTransportTest {
    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    @Test
    void aPeersRowsBeyondTheLimitAreATransportFailure() {
        Map<String, String> parameters = UcxSleepDefaults.applied(Map.of(), System.getenv());
        try (Arena arena = Arena.ofShared();
                NixlTransport owner = NixlTransport.open("UCX", parameters);
                NixlTransport reader = NixlTransport.open("UCX", parameters)) {
            long address = arena.allocate(4_096, 4_096).address();
            owner.register(List.of(new MemoryRange(address, 4_096, MemoryKind.DRAM, 0)));
            RemotePeer peer = reader.load(owner.metadata());
            BlockRow huge = new BlockRow(address, 1, 1, 1 << 25, MemoryKind.DRAM, 0);
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(() -> reader.prepareRemote(peer, List.of(huge)))
                    .withMessageContaining("blocks");
            peer.close();
        }
    }
}
