package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.PreparedList;
import dev.dormouse.transport.BlockList;

/** A prepared list of NIXL's. */
record NixlBlockList(PreparedList list) implements BlockList {
    @Override
    public int size() {
        return list.size();
    }

    @Override
    public void close() {
        NixlTransport.translated(
                () -> {
                    list.close();
                    return null;
                });
    }
}
