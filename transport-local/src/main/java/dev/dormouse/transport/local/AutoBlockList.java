package dev.dormouse.transport.local;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The same blocks, prepared by each transport that may move them. */
final class AutoBlockList implements BlockList {
    private final AutoTransport owner;
    private final Map<KvTransport, BlockList> parts;
    private int transfers;

    private AutoBlockList(AutoTransport owner, Map<KvTransport, BlockList> parts) {
        this.owner = owner;
        this.parts = parts;
    }

    /**
     * Local blocks, which any of the transports may move.
     *
     * @throws TransportException if one of them cannot prepare them; none has then
     */
    static AutoBlockList local(
            AutoTransport owner, List<KvTransport> transports, List<BlockRow> rows) {
        AutoBlockList list = new AutoBlockList(owner, new LinkedHashMap<>());
        try {
            for (KvTransport transport : transports) {
                list.parts.put(transport, transport.prepareLocal(rows));
            }
            return list;
        } catch (RuntimeException e) {
            try {
                list.close();
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    /** Blocks of a peer that {@code over} has loaded. */
    static AutoBlockList remote(AutoTransport owner, KvTransport over, BlockList blocks) {
        return new AutoBlockList(owner, Map.of(over, blocks));
    }

    static AutoBlockList of(BlockList list) {
        if (list instanceof AutoBlockList own) {
            return own;
        }
        throw new IllegalStateException("transfer: a list is foreign");
    }

    /** Which transport moves these blocks of a peer. */
    KvTransport over() {
        if (parts.size() != 1) {
            throw new IllegalStateException("transfer: the remote list is not one of a peer's");
        }
        return parts.keySet().iterator().next();
    }

    /** What {@code over} has prepared. */
    BlockList part(KvTransport over) {
        BlockList part = parts.get(over);
        if (part == null) {
            throw new IllegalStateException("transfer: a list is foreign");
        }
        return part;
    }

    void addTransfer(int change) {
        transfers += change;
    }

    @Override
    public int size() {
        return parts.values().iterator().next().size();
    }

    @Override
    public void close() {
        if (transfers > 0 && !owner.isClosed()) {
            throw new IllegalStateException(
                    "release list: " + transfers + " transfers still use it");
        }
        RuntimeException failure = null;
        for (BlockList part : parts.values()) {
            try {
                part.close();
            } catch (RuntimeException e) {
                if (failure == null) {
                    failure = e;
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }
}
