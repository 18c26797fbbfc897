package dev.dormouse.testkit;

import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.TransportException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A reader's mapping of the pages that a peer's registrations had when it was loaded. */
final class ModelMapping {
    private final ModelTransport owner;
    private final Map<Long, ModelRegistration.Section> sectionsByKey = new LinkedHashMap<>();
    private final Set<ModelRegistration> registrations = new LinkedHashSet<>();

    private ModelMapping(ModelTransport owner) {
        this.owner = owner;
    }

    /**
     * Maps all that the metadata name.
     *
     * @throws TransportException if their owner is gone, has dropped one of the keys, or lets
     *     nobody map its memory now; nothing is mapped then
     */
    static ModelMapping of(ModelTransport reader, ModelMetadata metadata) {
        ModelTransport owner = reader.fabric().find(metadata.agentName(), metadata.incarnation());
        if (owner == null) {
            throw new TransportException("load peer " + metadata.agentName() + ": it is gone");
        }
        ModelMapping mapping = new ModelMapping(owner);
        for (ModelPeer.RemoteSection remote : metadata.sections()) {
            ModelRegistration registration = owner.registration(remote.key());
            ModelRegistration.Section section = owner.section(remote.key());
            if (registration == null || section == null || registration.isRevoked()) {
                throw new MemoryWithdrawnException(
                        "load peer "
                                + metadata.agentName()
                                + ": its memory "
                                + (registration == null ? "is gone" : "is revoked"));
            }
            mapping.registrations.add(registration);
            mapping.sectionsByKey.put(remote.key(), section);
        }
        mapping.sectionsByKey.values().forEach(each -> owner.memory().pinAgain(each.pages()));
        return mapping;
    }

    /** What lies there for the reader, or null. */
    ModelRegistration.@Nullable Section section(long key) {
        return sectionsByKey.get(key);
    }

    void addTo(ModelPeer peer) {
        registrations.forEach(registration -> registration.mappedBy(peer, true));
    }

    /** The owner is told that it is unmapped. */
    void deny(ModelPeer peer) {
        registrations.forEach(registration -> registration.mappedBy(peer, false));
    }

    void unmap(ModelPeer peer) {
        deny(peer);
        sectionsByKey.values().forEach(each -> owner.memory().unpin(each.pages()));
        sectionsByKey.clear();
    }
}
