package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
import java.util.List;

/** Prepared blocks of a peer's memory, made by {@link RemoteAgent#prepare}. */
public final class RemoteList extends PreparedList {
    private final RemoteAgent owner;

    RemoteList(RemoteAgent owner, MemorySegment handle, Lengths lengths) {
        super(owner.agent, List.of(owner), handle, lengths);
        this.owner = owner;
    }

    /** The peer that owns the blocks. */
    public RemoteAgent owner() {
        return owner;
    }

    @Override
    String peerName() {
        return owner.name();
    }

    @Override
    String kind() {
        return "remote list of " + owner.name();
    }
}
