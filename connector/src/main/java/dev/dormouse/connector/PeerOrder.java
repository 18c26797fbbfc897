package dev.dormouse.connector;

import java.util.List;

/** Something that a rank shall do with a peer, once that is known well enough. */
sealed interface PeerOrder permits ReadOrder, WriteOrder {
    /** This engine's request. */
    String requestId();

    /** The peer's end of it. */
    RemoteSource remote();

    /** This engine's blocks. */
    List<Integer> localBlocks();

    /** The peer's blocks. */
    List<Integer> remoteBlocks();

    /** True if it is only to tell the holder that nothing is read. */
    boolean isNotice();

    /** True if the peer holds blocks for it, and may be asked whether it still does. */
    boolean needsHold();
}
