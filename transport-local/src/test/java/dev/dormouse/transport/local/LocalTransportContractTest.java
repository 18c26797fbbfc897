package dev.dormouse.transport.local;

import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.KvTransportContract;

/** The contract that every transport keeps. */
class LocalTransportContractTest extends KvTransportContract {
    @Override
    protected ContractNode open() {
        return new MemfdNode();
    }

    @Override
    protected boolean peersHoldMemory() {
        return true;
    }
}
