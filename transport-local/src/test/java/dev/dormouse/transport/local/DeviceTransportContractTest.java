package dev.dormouse.transport.local;

import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.KvTransportContract;
import dev.dormouse.transport.MemoryKind;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** The contract over device memory: the machine's GPU, or where there is none a stand-in. */
class DeviceTransportContractTest extends KvTransportContract {
    @TempDir private static Path kernels;

    @Override
    protected ContractNode open() {
        return new DeviceNode(SegmentAccess.READ_WRITE, Limits.USUAL, kernels);
    }

    @Override
    protected MemoryKind memoryKind() {
        return MemoryKind.VRAM;
    }

    @Override
    protected boolean peersHoldMemory() {
        return true;
    }
}
