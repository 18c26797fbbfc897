package dev.dormouse.nixl;

/**
 * The peer went away, and NIXL has dropped it with all that was prepared on it. Close its {@link
 * RemoteAgent} and what hangs on it, then load its metadata anew.
 */
public final class PeerLostException extends NixlException {
    private static final long serialVersionUID = 1;

    PeerLostException(String operation, String agent, String peer) {
        super(
                operation,
                agent,
                peer,
                "the peer was disconnected; close its remote agent and load its metadata anew");
    }
}
