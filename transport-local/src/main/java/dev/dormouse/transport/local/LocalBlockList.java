package dev.dormouse.transport.local;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.MemoryKind;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Blocks of this agent's registrations, or of a peer's mapping. */
final class LocalBlockList implements BlockList {
    private final LocalTransport owner;
    private final BlockTable blocks;
    private final MemoryKind kind;
    private final List<LocalRegistration> registrations;
    private final @Nullable LocalPeer peer;
    private boolean closed;
    private int transfers;

    /**
     * Takes hold of what the blocks lie in.
     *
     * @param peer whose blocks they are; null for this agent's
     */
    LocalBlockList(
            LocalTransport owner,
            BlockTable blocks,
            MemoryKind kind,
            List<LocalRegistration> registrations,
            @Nullable LocalPeer peer) {
        this.owner = owner;
        this.blocks = blocks;
        this.kind = kind;
        this.registrations = List.copyOf(registrations);
        this.peer = peer;
        registrations.forEach(registration -> registration.addList(1));
        if (peer != null) {
            peer.addList(1);
        }
    }

    BlockTable blocks() {
        return blocks;
    }

    /** Where all of them lie. */
    MemoryKind kind() {
        return kind;
    }

    @Nullable LocalPeer peer() {
        return peer;
    }

    /**
     * Passes if a transfer of {@code user} may use it.
     *
     * @throws IllegalStateException if it is closed
     * @throws IllegalArgumentException if it is another transport's
     */
    void requireOpen(LocalTransport user) {
        if (owner != user) {
            throw new IllegalArgumentException("the block list belongs to another transport");
        }
        if (closed) {
            throw new IllegalStateException("transfer refused: the block list is closed");
        }
    }

    void addTransfer(int change) {
        transfers += change;
    }

    @Override
    public int size() {
        return blocks.size();
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        if (transfers > 0) {
            throw new IllegalStateException(
                    "release list: " + transfers + " transfers still use it");
        }
        closed = true;
        registrations.forEach(registration -> registration.addList(-1));
        if (peer != null) {
            peer.addList(-1);
        }
    }
}
