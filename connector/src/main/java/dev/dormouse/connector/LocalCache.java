package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One rank's own KV cache on the transport: its registration, the block lists built on it, and the
 * metadata that tells peers of it. The three come and go together.
 */
final class LocalCache {
    /** What is built on a registration. */
    private record Derived(LocalBlockLists blocks, AgentMetadata metadata) {}

    /** How far the memory is known to the transport. */
    enum State {
        /** Registered, and all that is built on it is there. */
        REGISTERED,
        /** Registered, but nothing is built on it: nothing can be read, and no peer be told. */
        LIST_LOST,
        /** Not registered. */
        RELEASED
    }

    private final KvTransport transport;
    private final ConnectorConfig config;
    private final KvCacheRegions regions;
    private final List<LocalBlockLists> unclosed = new ArrayList<>();
    private @Nullable Registration registration;
    private @Nullable Derived derived;

    LocalCache(KvTransport transport, ConnectorConfig config, KvCacheRegions regions) {
        this.transport = transport;
        this.config = config;
        this.regions = regions;
    }

    KvCacheRegions regions() {
        return regions;
    }

    State state() {
        if (registration == null) {
            return State.RELEASED;
        }
        return derived == null ? State.LIST_LOST : State.REGISTERED;
    }

    /**
     * Registers the memory as it is mapped now, or builds what is missing on its registration.
     *
     * @throws TransportException if that fails; memory that was not registered before is not then,
     *     unless the {@link #state} says so
     */
    void register() {
        if (registration != null) {
            readmit();
            derived = derived == null ? derive(registration) : derived;
            return;
        }
        Registration fresh = transport.register(regions.backing());
        registration = fresh;
        try {
            derived = derive(fresh);
        } catch (TransportException e) {
            try {
                var _ = fresh.revoke(); // if it is held already, it can be closed later
                fresh.close();
                registration = null;
            } catch (TransportException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    /**
     * Asks peers to end what use they make of the memory by themselves.
     *
     * @return who has not yet
     */
    List<String> revoke() {
        return registration == null ? List.of() : registration.revoke();
    }

    /** Lets peers use the memory again, if the release was given up. */
    void readmit() {
        if (registration != null) {
            registration.readmit();
        }
    }

    /**
     * Ends the registration and all that was built on it.
     *
     * @throws TransportException if the memory stays registered; it is served on then, unless the
     *     {@link #state} says otherwise
     */
    void deregister() {
        if (registration == null) {
            throw new IllegalStateException("deregister: the KV cache is not registered");
        }
        if (derived != null) {
            unclosed.add(derived.blocks());
            derived = null;
        }
        try {
            while (!unclosed.isEmpty()) {
                unclosed.getLast().close();
                unclosed.removeLast();
            }
            registration.close();
            registration = null;
        } catch (TransportException e) {
            try {
                derived = derive(registration);
            } catch (TransportException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    /** The blocks, each split into {@code pieces} equal ones. */
    BlockList blocks(int pieces) {
        return required().blocks().split(pieces);
    }

    AgentMetadata metadata() {
        return required().metadata();
    }

    private Derived derive(Registration registration) {
        TransportMetadata agentMetadata = transport.metadata();
        KvCacheRegions registered = regions.onDevice(registration.ranges().getFirst().deviceId());
        return new Derived(
                new LocalBlockLists(transport, registered),
                AgentMetadata.ofAttention(
                        config.engineId(),
                        agentMetadata,
                        registered,
                        config.factors().attentionBackend()));
    }

    private Derived required() {
        if (derived == null) {
            throw new IllegalStateException(
                    "the KV cache is not ready for reads: it is " + state());
        }
        return derived;
    }
}
