package dev.dormouse.testkit;

import dev.dormouse.transport.KvTransport;

/** The model keeps the contract that the real transports keep. */
final class ModelTransportContractTest extends KvTransportContract {
    private final ModelFabric fabric = new ModelFabric(System::nanoTime);
    private int opened;

    @Override
    protected ContractNode open() {
        ModelMemory memory = new ModelMemory(64);
        ModelTransport transport = fabric.open("agent-" + opened++, memory);
        return new ContractNode() {
            @Override
            public KvTransport transport() {
                return transport;
            }

            @Override
            public long allocate(long lengthBytes) {
                return memory.allocate(lengthBytes);
            }

            @Override
            public void write(long address, byte[] bytes) {
                memory.write(address, bytes);
            }

            @Override
            public byte[] read(long address, int lengthBytes) {
                return memory.read(address, lengthBytes);
            }

            @Override
            public void close() {
                transport.close();
            }
        };
    }
}
