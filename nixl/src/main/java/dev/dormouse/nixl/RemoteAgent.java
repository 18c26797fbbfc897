package dev.dormouse.nixl;

import dev.dormouse.nixl.AgentMetadata.Opaque;
import dev.dormouse.nixl.AgentMetadata.SectionKey;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A peer whose metadata is loaded.
 *
 * <p>Closing drops it: NIXL forgets its keys and closes the connection. That is refused while
 * prepared lists or transfers use the peer. Over TCP each drop and renewed load costs both sides
 * one or two sockets for the life of the process (measured with 1.5.1, which closes UCX's endpoint
 * without force); {@link #loadSections} costs none.
 */
public final class RemoteAgent extends NixlObject {
    private final String name;
    private final Map<String, Opaque> connections;
    private final Map<SectionKey, Opaque> sections;
    private boolean lost;

    private RemoteAgent(NixlAgent agent, AgentMetadata metadata) {
        super(agent, List.of());
        this.name = metadata.agent();
        this.connections = Map.copyOf(metadata.connections());
        this.sections = new HashMap<>(metadata.sections());
    }

    /** Checks and loads the metadata of a peer that is not loaded. */
    static RemoteAgent load(NixlAgent agent, byte[] metadata) {
        AgentMetadata parsed = agent.readMetadata(metadata);
        Optional<RemoteAgent> loaded = agent.remote(parsed.agent());
        if (loaded.isPresent()) {
            throw new PeerLoadedException(loaded.get());
        }
        if (parsed.agent().equals(agent.name())) {
            throw new MetadataException(agent.name(), parsed.agent(), "it is this agent's own");
        }
        if (Collections.disjoint(parsed.connections().keySet(), agent.backends())) {
            throw new MetadataException(
                    agent.name(),
                    parsed.agent(),
                    "no common backend: peer has "
                            + parsed.connections().keySet()
                            + ", this agent "
                            + agent.backends());
        }
        agent.nativeAgent.load(metadata, parsed.agent());
        return new RemoteAgent(agent, parsed);
    }

    /** The peer's name. */
    public String name() {
        return name;
    }

    /**
     * Whether nothing moves to or from the peer any more: a transfer or message failed, after which
     * UCX does not use the connection again, or NIXL dropped the peer on its own. A peer that is
     * gone but not used stays unnoticed.
     */
    public boolean isLost() {
        synchronized (agent.lock) {
            return lost;
        }
    }

    /**
     * Loads what the peer registered since, and keeps the connection.
     *
     * <p>NIXL tells sections apart by address, length and device id. When one that is loaded comes
     * again with another key, NIXL refuses and, in doing so, destroys the peer for good; so that is
     * refused here first. A peer in host memory avoids it by registering under a fresh device id;
     * otherwise close this object and load the metadata anew. Sections loaded before stay, a few
     * KiB each, and so does access under their device ids: it is for the caller to use the new ones
     * only.
     *
     * @param metadata partial or full metadata of this peer
     * @throws MetadataException when it is malformed, of another peer, or would harm what is loaded
     */
    public void loadSections(byte[] metadata) {
        synchronized (agent.lock) {
            requireReachable("load remote metadata");
            AgentMetadata parsed = agent.readMetadata(metadata);
            if (!parsed.agent().equals(name)) {
                throw new MetadataException(
                        agent.name(), name, "it is that of agent " + parsed.agent());
            }
            parsed.connections().forEach(this::checkConnection);
            parsed.sections().forEach(this::checkSection);
            try {
                agent.nativeAgent.load(metadata, name);
            } catch (NixlStatusException e) {
                noteFailure();
                throw e;
            }
            sections.putAll(parsed.sections());
        }
    }

    /** How many sections are loaded, those that the peer has given up included. */
    public int sections() {
        synchronized (agent.lock) {
            return sections.size();
        }
    }

    /** Connects now, so that the first transfer does not have to. */
    public void connect() {
        synchronized (agent.lock) {
            requireReachable("connect");
            try {
                agent.nativeAgent.connect(name);
            } catch (NixlStatusException e) {
                noteFailure();
                throw e;
            }
        }
    }

    /** Whether the loaded metadata covers all of the blocks. */
    public boolean holds(BlockList blocks) {
        synchronized (agent.lock) {
            requireReachable("check remote blocks");
            MemorySegment list = agent.transfers.blockList(blocks);
            try {
                return agent.nativeAgent.isLoaded(name, list);
            } finally {
                agent.transfers.freeBlocks(list);
            }
        }
    }

    /** What the peer has registered of one kind of memory, as far as it is loaded. */
    public List<RegisteredRange> registered(MemoryType type) {
        synchronized (agent.lock) {
            return sections.keySet().stream()
                    .filter(section -> section.type() == type)
                    .filter(section -> agent.backends().contains(section.backend()))
                    .map(
                            section ->
                                    new RegisteredRange(
                                            section.address(),
                                            section.lengthBytes(),
                                            section.deviceId()))
                    .distinct()
                    .toList();
        }
    }

    /**
     * Prepares the peer's blocks for transfers by index.
     *
     * @throws NixlStatusException when the loaded metadata does not cover them
     */
    public RemoteList prepare(BlockList blocks) {
        synchronized (agent.lock) {
            requireReachable("prepare blocks");
            Lengths lengths = blocks.lengths();
            try {
                return new RemoteList(this, agent.transfers.prepare(name, blocks), lengths);
            } catch (NixlStatusException e) {
                noteFailure();
                throw e;
            }
        }
    }

    /**
     * Sends a message that belongs to no transfer. It returns before the peer has it; without a
     * progress thread it may wait until this side polls or drains.
     */
    public void notify(byte[] message) {
        synchronized (agent.lock) {
            requireReachable("notify");
            agent.checkNotification(message);
            try {
                agent.notifications.send(name, message);
            } catch (NixlStatusException e) {
                noteBrokenConnection();
                throw e;
            }
        }
    }

    void requireReachable(String operation) {
        requireOpen(operation);
        if (lost) {
            throw new PeerLostException(operation, agent.name(), name);
        }
    }

    boolean lost() {
        return lost;
    }

    /** After a failure that may have many reasons: did NIXL drop the peer? */
    void noteFailure() {
        if (!lost) {
            lost = !agent.nativeAgent.isLoaded(name, MemorySegment.NULL);
        }
    }

    /**
     * After bytes did not get through. The C interface folds NIXL's REMOTE_DISCONNECT into a
     * general status, and 1.5.1 keeps the dead peer; every later use of it fails.
     */
    void noteBrokenConnection() {
        lost = true;
    }

    @Override
    String kind() {
        return "remote agent " + name;
    }

    @Override
    void free() {
        agent.nativeAgent.invalidate(name);
    }

    private void checkConnection(String backend, Opaque connection) {
        Opaque loaded = connections.get(backend);
        if (agent.backends().contains(backend) && (loaded == null || !connection.equals(loaded))) {
            throw new MetadataException(
                    agent.name(),
                    name,
                    "its connection by " + backend + " has changed; close and load anew");
        }
    }

    private void checkSection(SectionKey key, Opaque remoteKey) {
        Opaque loaded = sections.get(key);
        if (agent.backends().contains(key.backend())
                && loaded != null
                && !loaded.equals(remoteKey)) {
            throw new MetadataException(
                    agent.name(),
                    name,
                    "section "
                            + key
                            + " is loaded with another key; register under a fresh device id, or close and load anew");
        }
    }
}
