package dev.dormouse.testkit;

import dev.dormouse.transport.KvTransport;

/** An agent of the model under a contract. */
record ModelNode(KvTransport transport, ModelMemory memory) implements ContractNode {
    private static final int PAGE_BYTES = 64;

    static ModelNode open(ModelFabric fabric, String name) {
        ModelMemory memory = new ModelMemory(PAGE_BYTES);
        return new ModelNode(fabric.open(name, memory), memory);
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
}
