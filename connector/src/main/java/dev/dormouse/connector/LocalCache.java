package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import org.jspecify.annotations.Nullable;

/**
 * One rank's own KV cache on the transport: its registration, the block list built on it, and the
 * metadata that tells peers of it. The three come and go together.
 */
final class LocalCache {
    private record Registered(
            Registration registration, LocalBlockLists blocks, AgentMetadata metadata) {}

    private final KvTransport transport;
    private final ConnectorConfig config;
    private final KvCacheRegions regions;
    private @Nullable Registered registered;

    LocalCache(KvTransport transport, ConnectorConfig config, KvCacheRegions regions) {
        this.transport = transport;
        this.config = config;
        this.regions = regions;
    }

    KvCacheRegions regions() {
        return regions;
    }

    /**
     * Registers the memory as it is mapped now.
     *
     * @throws TransportException if that fails; nothing is registered then
     */
    void register() {
        Registration registration = transport.register(regions.backing());
        try {
            registered = derive(registration);
        } catch (TransportException e) {
            try {
                registration.close();
            } catch (TransportException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    /**
     * Ends the registration and all that was built on it.
     *
     * @throws TransportException if the memory stays registered; it is served on then
     */
    void deregister() {
        Registered old = required();
        old.blocks().close();
        try {
            old.registration().close();
            registered = null;
        } catch (TransportException e) {
            registered = null;
            try {
                registered = derive(old.registration());
            } catch (TransportException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    boolean isRegistered() {
        return registered != null;
    }

    /** The blocks, each split into {@code pieces} equal ones. */
    BlockList blocks(int pieces) {
        return required().blocks().split(pieces);
    }

    AgentMetadata metadata() {
        return required().metadata();
    }

    private Registered derive(Registration registration) {
        byte[] agentMetadata = transport.metadata();
        LocalBlockLists blocks = new LocalBlockLists(transport, regions);
        return new Registered(
                registration,
                blocks,
                AgentMetadata.ofAttention(
                        config.engineId(),
                        agentMetadata,
                        regions,
                        config.factors().attentionBackend()));
    }

    private Registered required() {
        if (registered == null) {
            throw new IllegalStateException("the KV cache is not registered");
        }
        return registered;
    }
}
