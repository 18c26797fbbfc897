package dev.dormouse.testkit;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.TransportException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A prepared list; each block is bound to a registration's section or to a peer's key. */
final class ModelBlockList implements BlockList {
    /** A block of this agent's memory. */
    record LocalBlock(ModelRegistration.Section section, long address, int bytes) {}

    /** A block of a peer's memory. */
    record RemoteBlock(long key, long address, int bytes) {}

    private final ModelTransport owner;
    private final List<LocalBlock> local;
    private final List<RemoteBlock> remote;
    private final List<ModelRegistration> registrations;
    private final @Nullable ModelPeer peer;
    private boolean closed;
    private int transfers;

    private ModelBlockList(
            ModelTransport owner,
            List<LocalBlock> local,
            List<ModelRegistration> registrations,
            List<RemoteBlock> remote,
            @Nullable ModelPeer peer) {
        this.owner = owner;
        this.local = List.copyOf(local);
        this.registrations = List.copyOf(registrations);
        this.remote = List.copyOf(remote);
        this.peer = peer;
        registrations.forEach(registration -> registration.addList(1));
        if (peer != null) {
            peer.addList(1);
        }
    }

    static ModelBlockList local(
            ModelTransport owner, List<LocalBlock> blocks, List<ModelRegistration> registrations) {
        return new ModelBlockList(owner, blocks, registrations, List.of(), null);
    }

    static ModelBlockList remote(ModelTransport owner, List<RemoteBlock> blocks, ModelPeer peer) {
        return new ModelBlockList(owner, List.of(), List.of(), blocks, peer);
    }

    @Nullable ModelPeer peer() {
        return peer;
    }

    LocalBlock localBlock(int index) {
        return local.get(index);
    }

    RemoteBlock remoteBlock(int index) {
        return remote.get(index);
    }

    void requireUsable(ModelTransport by, boolean asRemote) {
        if (closed || owner != by || (peer != null) != asRemote) {
            throw new IllegalStateException(
                    "transfer: the "
                            + (asRemote ? "remote" : "local")
                            + " list is closed or foreign");
        }
    }

    /** Is shown a block; false if it is in no memory that is known. */
    interface BlockVisitor {
        boolean visit(long address, int bytes);
    }

    /** Shows all blocks of all rows, in order. */
    static void forEachBlock(List<BlockRow> rows, BlockVisitor visitor) {
        for (BlockRow row : rows) {
            for (int i = 0; i < row.count(); i++) {
                long address = row.address() + i * row.strideBytes();
                if (!visitor.visit(address, Math.toIntExact(row.blockBytes()))) {
                    throw new TransportException(
                            "prepare: block "
                                    + i
                                    + " of "
                                    + row
                                    + " is outside all registered memory");
                }
            }
        }
    }

    static void requireIndices(
            ModelBlockList local, int[] localIndices, ModelBlockList remote, int[] remoteIndices) {
        if (localIndices.length != remoteIndices.length || localIndices.length == 0) {
            throw new IllegalArgumentException(
                    "transfer: "
                            + localIndices.length
                            + " local and "
                            + remoteIndices.length
                            + " remote blocks");
        }
        for (int i = 0; i < localIndices.length; i++) {
            if (localIndices[i] < 0
                    || localIndices[i] >= local.size()
                    || remoteIndices[i] < 0
                    || remoteIndices[i] >= remote.size()
                    || local.localBlock(localIndices[i]).bytes()
                            != remote.remoteBlock(remoteIndices[i]).bytes()) {
                throw new IllegalArgumentException(
                        "transfer: blocks "
                                + localIndices[i]
                                + " and "
                                + remoteIndices[i]
                                + " do not both exist with one size");
            }
        }
    }

    void addTransfer(int change) {
        transfers += change;
    }

    @Override
    public int size() {
        return peer != null ? remote.size() : local.size();
    }

    @Override
    public void close() {
        synchronized (owner.fabric()) {
            if (closed) {
                return;
            }
            if (transfers > 0) {
                throw new IllegalStateException(
                        "release list: " + transfers + " transfers still use it");
            }
            owner.faults().beforeListClose();
            closed = true;
            registrations.forEach(registration -> registration.addList(-1));
            if (peer != null) {
                peer.addList(-1);
            }
            owner.forget(this);
        }
    }
}
