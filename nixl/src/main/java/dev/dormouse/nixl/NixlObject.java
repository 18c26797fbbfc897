package dev.dormouse.nixl;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Something native that an agent owns. It knows what was built on it, and closes only when nothing
 * is: NIXL itself would go on with freed memory.
 *
 * <p>All methods take the agent's lock; those that are not public expect the caller to hold it.
 */
abstract sealed class NixlObject implements AutoCloseable
        permits Registration, RemoteAgent, PreparedList, Transfer {
    private static final int MAX_NAMED = 8;

    final NixlAgent agent;
    private final long id;
    private final List<NixlObject> parents;
    private final Set<NixlObject> children;
    private boolean open = true;

    NixlObject(NixlAgent agent, List<? extends NixlObject> parents) {
        this.agent = agent;
        this.id = agent.attach(this);
        this.parents = List.copyOf(parents);
        // nothing is built on a transfer, and there are many
        this.children = this instanceof Transfer ? Set.of() : new LinkedHashSet<>();
        for (NixlObject parent : this.parents) {
            parent.children.add(this);
        }
    }

    /** What it is, for messages, without its number. */
    abstract String kind();

    /**
     * Frees the native part. When it throws, the object stays open, unless it detached itself.
     *
     * @throws NixlException when NIXL refuses
     */
    abstract void free();

    /**
     * Frees it. Closing twice is fine, also after the agent's end.
     *
     * @throws IllegalStateException naming what is still built on it; nothing changed
     * @throws NixlException when NIXL refuses
     */
    @Override
    public void close() {
        synchronized (agent.lock) {
            if (!open) {
                return;
            }
            requireUnused("close");
            free();
            detach();
        }
    }

    /**
     * Refuses if something is built on it.
     *
     * @throws IllegalStateException naming what is
     */
    public void requireUnused(String operation) {
        synchronized (agent.lock) {
            if (!children.isEmpty()) {
                throw new IllegalStateException(
                        operation
                                + " "
                                + this
                                + " refused: "
                                + children.size()
                                + " live objects are built on it: "
                                + nameChildren()
                                + "; close them first");
            }
        }
    }

    /** Whether its native part is still there; a transfer that was closed while active keeps it. */
    public boolean isOpen() {
        synchronized (agent.lock) {
            return open;
        }
    }

    void requireOpen(String operation) {
        agent.requireOpen(operation);
        if (!open) {
            throw new IllegalStateException(operation + " refused: " + this + " is closed");
        }
    }

    /** For arguments: open, and of this very agent. */
    void requireUsableBy(NixlAgent user, String operation) {
        if (agent != user) {
            throw new IllegalArgumentException(
                    operation
                            + " refused: "
                            + this
                            + " belongs to agent "
                            + agent.name()
                            + ", not to "
                            + user.name());
        }
        requireOpen(operation);
    }

    /** Ends its life in Java; idempotent. */
    void detach() {
        if (open) {
            open = false;
            agent.detach(this);
            for (NixlObject parent : parents) {
                parent.children.remove(this);
            }
        }
    }

    /** As {@code registration#3}. */
    @Override
    public String toString() {
        return kind() + "#" + id;
    }

    private String nameChildren() {
        return children.stream()
                .limit(MAX_NAMED)
                .map(NixlObject::toString)
                .collect(Collectors.joining(", ", "", children.size() > MAX_NAMED ? ", ..." : ""));
    }
}
