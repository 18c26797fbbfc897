package dev.dormouse.nixl;

/**
 * The connection to the peer is broken, or NIXL has dropped the peer. Close its {@link RemoteAgent}
 * and what is built on it, then load its metadata anew.
 */
public final class PeerLostException extends NixlException {
    private static final long serialVersionUID = 1;

    PeerLostException(String operation, String agent, String peer) {
        super(
                operation,
                agent,
                peer,
                "the peer is lost; close its remote agent and load its metadata anew");
    }
}
