package dev.dormouse.nixl;

/** A peer's metadata were not loaded, since a peer of the same name is loaded. */
public final class PeerLoadedException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    private final String peer;

    PeerLoadedException(RemoteAgent loaded) {
        super("load remote metadata refused: " + loaded + " is loaded; close it first");
        this.peer = loaded.name();
    }

    /** The name of the peer that is loaded. */
    public String peer() {
        return peer;
    }
}
