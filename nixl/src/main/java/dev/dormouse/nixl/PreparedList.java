package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Blocks that transfers name by index. Closing is refused while transfers use it. */
public abstract sealed class PreparedList extends NixlObject permits LocalList, RemoteList {
    final MemorySegment handle;
    final Lengths lengths;

    PreparedList(
            NixlAgent agent,
            List<? extends NixlObject> parents,
            MemorySegment handle,
            Lengths lengths) {
        super(agent, parents);
        this.handle = handle;
        this.lengths = lengths;
    }

    /** How many blocks. */
    public int size() {
        return lengths.size();
    }

    /** Whose blocks they are, or null for local ones. */
    abstract @Nullable String peerName();

    @Override
    void free() {
        try {
            agent.transfers.releasePrepared(handle, peerName());
        } finally {
            detach();
        }
    }
}
