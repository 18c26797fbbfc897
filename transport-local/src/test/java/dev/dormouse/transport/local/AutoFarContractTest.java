package dev.dormouse.transport.local;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.KvTransportContract;
import dev.dormouse.testkit.ModelFabric;

/** Each process is on a host of its own: only the far way leads there. */
final class AutoFarContractTest extends KvTransportContract {
    private final ModelFabric far = new ModelFabric(System::nanoTime);
    private int opened;

    @Override
    protected ContractNode open() {
        ModelFabric host = new ModelFabric(System::nanoTime, Addressing.MAPPED);
        return AutoNode.open(host, far, "agent-" + opened++);
    }
}
