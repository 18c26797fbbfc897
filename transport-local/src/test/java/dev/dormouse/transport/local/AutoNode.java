package dev.dormouse.transport.local;

import dev.dormouse.testkit.ContractNode;
import dev.dormouse.testkit.ModelFabric;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.testkit.ModelTransport;
import dev.dormouse.transport.KvTransport;

/** An agent with two ways, both of the model. */
record AutoNode(ModelTransport near, ModelTransport far, KvTransport transport, ModelMemory memory)
        implements ContractNode {
    private static final int PAGE_BYTES = 64;

    static AutoNode open(ModelFabric near, ModelFabric far, String name) {
        ModelMemory memory = new ModelMemory(PAGE_BYTES);
        ModelTransport nearby = near.open(name, memory);
        ModelTransport distant = far.open(name, memory);
        return new AutoNode(nearby, distant, new AutoTransport(nearby, distant), memory);
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
