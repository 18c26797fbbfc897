package dev.dormouse.testkit;

import dev.dormouse.transport.KvTransport;

/** An agent under {@link KvTransportContract}, and the memory of the process it serves. */
public interface ContractNode extends AutoCloseable {
    /** The agent. */
    KvTransport transport();

    /** Takes memory that lives until the node is closed. */
    long allocate(long lengthBytes);

    /** Writes as the memory's owner does. */
    void write(long address, byte[] bytes);

    /** Reads as the memory's owner does. */
    byte[] read(long address, int lengthBytes);

    /** Closes the agent, then frees the memory. Idempotent. */
    @Override
    void close();
}
