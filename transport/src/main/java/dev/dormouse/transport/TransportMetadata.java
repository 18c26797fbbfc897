package dev.dormouse.transport;

import java.util.Arrays;

/**
 * What a peer needs to load an agent: how to connect, and the keys of the agent's registrations.
 * From a peer, both are untrusted bytes.
 *
 * @param agent what any peer needs, as the transport's own library writes it; empty if only
 *     processes of the same host can load the agent
 * @param sameHost what a process of the same host needs to use the memory without a network; empty
 *     if that is not offered
 */
@SuppressWarnings("ArrayRecordComponent") // copied where they cross a boundary
public record TransportMetadata(byte[] agent, byte[] sameHost) {
    private static final byte[] NONE = {};

    /** Metadata of an agent that does not offer more to processes of its host. */
    public static TransportMetadata ofAgent(byte[] agent) {
        return new TransportMetadata(agent, NONE);
    }

    /** Metadata of an agent that only processes of its host can load. */
    public static TransportMetadata ofSameHost(byte[] sameHost) {
        return new TransportMetadata(NONE, sameHost);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TransportMetadata(byte[] otherAgent, byte[] otherSameHost)
                && Arrays.equals(agent, otherAgent)
                && Arrays.equals(sameHost, otherSameHost);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(agent) + Arrays.hashCode(sameHost);
    }

    @Override
    public String toString() {
        return "metadata of " + agent.length + " bytes, same host " + sameHost.length;
    }
}
