package dev.dormouse.transport.local;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.KvTransportContract;
import dev.dormouse.testkit.ModelFabric;

/** Both ways are there: the near one is taken. */
final class AutoNearContractTest extends KvTransportContract {
    private final ModelFabric near = new ModelFabric(System::nanoTime, Addressing.MAPPED);
    private final ModelFabric far = new ModelFabric(System::nanoTime);
    private int opened;

    @Override
    protected ContractNode open() {
        return AutoNode.open(near, far, "agent-" + opened++);
    }

    @Override
    protected boolean peersHoldMemory() {
        return true;
    }
}
