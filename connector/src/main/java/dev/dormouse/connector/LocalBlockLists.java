package dev.dormouse.connector;

import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One rank's own blocks as prepared lists: whole, and split into equal pieces for peers whose
 * blocks are smaller or hold other heads. A list is made when it is first needed. All of them are
 * bound to one registration.
 */
final class LocalBlockLists {
    private final KvTransport transport;
    private final KvCacheRegions regions;
    private final Map<Integer, BlockList> byPieces = new HashMap<>();

    /**
     * Prepares the whole blocks.
     *
     * @throws TransportException if that fails; nothing is prepared then
     */
    LocalBlockLists(KvTransport transport, KvCacheRegions regions) {
        this.transport = transport;
        this.regions = regions;
        byPieces.put(1, prepare(1));
    }

    /**
     * The blocks, each split into {@code pieces}: all first pieces of a region, then its second
     * ones, and so on, region by region.
     */
    BlockList split(int pieces) {
        return byPieces.computeIfAbsent(pieces, this::prepare);
    }

    /**
     * Releases all lists; if one cannot be released, the others still are. May be called again
     * then.
     *
     * @throws TransportException if one is left
     */
    void close() {
        List<TransportException> failures = new ArrayList<>();
        byPieces.values()
                .removeIf(
                        list -> {
                            try {
                                list.close();
                                return true;
                            } catch (TransportException e) {
                                failures.add(e);
                                return false;
                            }
                        });
        if (!failures.isEmpty()) {
            TransportException first = failures.removeFirst();
            TransportException failure =
                    new TransportException(
                            "release of the lists of the KV cache's blocks failed: "
                                    + first.getMessage(),
                            first);
            failures.forEach(failure::addSuppressed);
            throw failure;
        }
    }

    private BlockList prepare(int pieces) {
        List<BlockRow> rows = new ArrayList<>();
        for (KvCacheRegions.Region region : regions.regions()) {
            long pieceBytes = region.blockBytes() / pieces;
            for (int piece = 0; piece < pieces; piece++) {
                rows.add(
                        new BlockRow(
                                region.address() + piece * pieceBytes,
                                pieceBytes,
                                region.strideBytes(),
                                region.blocks(),
                                regions.kind(),
                                regions.deviceId()));
            }
        }
        return transport.prepareLocal(rows);
    }
}
