package dev.dormouse.transport.nixl;

import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.KvTransportContract;
import dev.dormouse.testkit.Natives;
import dev.dormouse.transport.KvTransport;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.BeforeAll;

/** The real library under the contract that the model transport of all other tests keeps, too. */
class NixlTransportContractTest extends KvTransportContract {
    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    @Override
    protected ContractNode open() {
        return new HostNode();
    }

    private static final class HostNode implements ContractNode {
        private final Arena arena = Arena.ofShared();
        private final Map<Long, MemorySegment> segments = new HashMap<>();
        private final NixlTransport transport =
                NixlTransport.open("UCX", UcxSleepDefaults.applied(Map.of(), System.getenv()));
        private boolean open = true;

        @Override
        public KvTransport transport() {
            return transport;
        }

        @Override
        public long allocate(long lengthBytes) {
            MemorySegment segment = arena.allocate(lengthBytes, 4096);
            segments.put(segment.address(), segment);
            return segment.address();
        }

        @Override
        public void write(long address, byte[] bytes) {
            MemorySegment.copy(bytes, 0, segment(address), ValueLayout.JAVA_BYTE, 0, bytes.length);
        }

        @Override
        public byte[] read(long address, int lengthBytes) {
            return segment(address).asSlice(0, lengthBytes).toArray(ValueLayout.JAVA_BYTE);
        }

        private MemorySegment segment(long address) {
            return Objects.requireNonNull(segments.get(address));
        }

        @Override
        public void close() {
            if (open) {
                open = false;
                transport.close();
                arena.close();
            }
        }
    }
}
