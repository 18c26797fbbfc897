package dev.dormouse.testkit;

/** So does the model of processes that map each other's memory. */
final class MappedModelContractTest extends KvTransportContract {
    private final ModelFabric fabric = new ModelFabric(System::nanoTime, Addressing.MAPPED);
    private int opened;

    @Override
    protected ContractNode open() {
        return ModelNode.open(fabric, "agent-" + opened++);
    }

    @Override
    protected boolean peersHoldMemory() {
        return true;
    }
}
