package dev.dormouse.transport;

/**
 * A peer was not loaded, since one of the same agent name is. The name stands in the peer's bytes:
 * whoever loaded it first may have had them from elsewhere.
 */
public final class PeerLoadedException extends TransportException {
    private static final long serialVersionUID = 1L;

    private final String agentName;

    /** Names the agent that is loaded. */
    public PeerLoadedException(String agentName) {
        super("load peer " + agentName + ": it is loaded already; close that one first");
        this.agentName = agentName;
    }

    /** The agent that is loaded. */
    public String agentName() {
        return agentName;
    }
}
