package dev.dormouse.nixl;

import org.jspecify.annotations.Nullable;

/** Base of every failure that this module reports, apart from wrong use by the caller. */
public class NixlException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String operation;
    private final String agent;
    private final @Nullable String peer;

    NixlException(String operation, String agent, @Nullable String peer, String reason) {
        super(
                operation
                        + " failed: agent="
                        + agent
                        + (peer == null ? "" : " peer=" + peer)
                        + ": "
                        + reason);
        this.operation = operation;
        this.agent = agent;
        this.peer = peer;
    }

    /** What was attempted, as {@code load remote metadata}. */
    public String operation() {
        return operation;
    }

    /** The name of the local agent. */
    public String agent() {
        return agent;
    }

    /** The name of the remote agent, or null when none was involved. */
    public @Nullable String peer() {
        return peer;
    }
}
