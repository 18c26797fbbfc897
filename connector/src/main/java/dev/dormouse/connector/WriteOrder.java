package dev.dormouse.connector;

import java.util.List;

/**
 * One request's write: a push connector's holder has found out who waits for it.
 *
 * @param requestId this engine's request
 * @param remote the engine that waits, and its request
 * @param sender the agent that asked for it
 * @param localBlocks this engine's blocks of the prompt's end
 * @param remoteBlocks as many blocks of that engine, which take them
 */
record WriteOrder(
        String requestId,
        RemoteSource remote,
        String sender,
        List<Integer> localBlocks,
        List<Integer> remoteBlocks)
        implements PeerOrder {
    WriteOrder {
        localBlocks = List.copyOf(localBlocks);
        remoteBlocks = List.copyOf(remoteBlocks);
    }

    @Override
    public boolean isNotice() {
        return false;
    }

    @Override
    public boolean needsHold() {
        return false;
    }
}
