package dev.dormouse.testkit;

/** The model keeps the contract that the real transports keep. */
final class ModelTransportContractTest extends KvTransportContract {
    private final ModelFabric fabric = new ModelFabric(System::nanoTime);
    private int opened;

    @Override
    protected ContractNode open() {
        return ModelNode.open(fabric, "agent-" + opened++);
    }
}
