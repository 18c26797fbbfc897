package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.PreparedList;
import dev.dormouse.transport.BlockList;

/**
 * A prepared list of NIXL's.
 *
 * @param blocks what it was prepared from
 */
record NixlBlockList(PreparedList list, SplitBlocks blocks) implements BlockList {
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
