package dev.dormouse.connector;

import java.util.List;

/**
 * Which pieces of local blocks go with which pieces of a peer rank's blocks. Both lists are
 * region-major: all blocks of a region's first piece, then of its second, and so on.
 *
 * @param localPieces pieces into which each local block is split
 * @param local indices into the local list of such pieces
 * @param remote as many indices into the peer rank's list
 */
@SuppressWarnings("ArrayRecordComponent") // made once, handed to the transport
record BlockPairs(int localPieces, int[] local, int[] remote) {
    /**
     * Pairs an order's blocks by the tokens that they hold: the peer's blocks may be smaller than
     * local ones, and what a local block has beyond the peer's last block is left as it is.
     *
     * @throws ConnectorException if a block does not exist, or the peer's are too few
     */
    static BlockPairs of(
            ReadOrder order, List<KvCacheRegions.Region> regions, RemoteGeometry source) {
        return of(
                order.localBlocks(),
                order.remoteBlocks(),
                order.firstToken(),
                order.endToken(),
                regions,
                source);
    }

    /**
     * Pairs blocks of equal size one by one.
     *
     * @throws ConnectorException if a block does not exist, or the lists differ in length
     */
    static BlockPairs of(
            WriteOrder order, List<KvCacheRegions.Region> regions, RemoteGeometry target) {
        int tokens = order.remoteBlocks().size() * target.blockTokens();
        return of(order.localBlocks(), order.remoteBlocks(), 0, tokens, regions, target);
    }

    private static BlockPairs of(
            List<Integer> localBlocks,
            List<Integer> remoteBlocks,
            int firstToken,
            int endToken,
            List<KvCacheRegions.Region> regions,
            RemoteGeometry source) {
        int ratio = source.blockRatio();
        int remoteTokens = source.blockTokens();
        int first = firstToken / remoteTokens;
        int end = Math.ceilDiv(endToken, remoteTokens);
        int firstLocal = first / ratio;
        if (end > remoteBlocks.size()
                || first % ratio != 0
                || first >= end
                || Math.ceilDiv(end, ratio) - firstLocal != localBlocks.size()) {
            throw new ConnectorException(
                    "the peer has "
                            + remoteBlocks.size()
                            + " blocks of "
                            + remoteTokens
                            + " tokens, wanted are tokens "
                            + firstToken
                            + " to "
                            + endToken
                            + " for "
                            + localBlocks.size()
                            + " blocks");
        }
        int count = (end - first) * source.pieces();
        int[] to = new int[regions.size() * count];
        int[] from = new int[to.length];
        int at = 0;
        int toBase = 0;
        int fromBase = 0;
        for (int index = 0; index < regions.size(); index++) {
            int toLimit = regions.get(index).blocks();
            int fromLimit = source.blocks(index);
            for (int piece = 0; piece < source.pieces(); piece++) {
                for (int block = first; block < end; block++) {
                    int local = localBlocks.get(block / ratio - firstLocal);
                    int remote = remoteBlocks.get(block);
                    int localPiece = source.firstLocalPiece() + piece * ratio + block % ratio;
                    to[at] = toBase + localPiece * toLimit + checked("local", local, toLimit);
                    from[at] = fromBase + piece * fromLimit + checked("remote", remote, fromLimit);
                    at++;
                }
            }
            toBase += toLimit * source.localPieces();
            fromBase += fromLimit * source.pieces();
        }
        return new BlockPairs(source.localPieces(), to, from);
    }

    private static int checked(String side, int block, int limit) {
        if (block < 0 || block >= limit) {
            throw new ConnectorException(
                    side + " block " + block + " does not exist; there are " + limit);
        }
        return block;
    }
}
