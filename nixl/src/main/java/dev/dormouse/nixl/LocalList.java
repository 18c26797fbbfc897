package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Prepared blocks of local memory, made by {@link NixlAgent#prepare}. */
public final class LocalList extends PreparedList {
    LocalList(NixlAgent agent, List<Registration> owners, MemorySegment handle, Lengths lengths) {
        super(agent, owners, handle, lengths);
    }

    @Override
    @Nullable String peerName() {
        return null;
    }

    @Override
    String kind() {
        return "local list";
    }
}
