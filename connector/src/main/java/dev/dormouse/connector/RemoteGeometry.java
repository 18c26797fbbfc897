package dev.dormouse.connector;

import dev.dormouse.transport.BlockRow;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The part of a peer rank's memory that holds this rank's KV heads, checked against this rank's:
 * only what can be read block by block is let through.
 *
 * <p>With {@code LBHNC}, the heads of a block lie one behind the other, so any run of heads is one
 * piece. Where the peer's blocks are shorter, a run of tokens is one piece for each head.
 *
 * @param rows region by region, one for each piece of a block
 * @param pieces pieces read from each of the peer's blocks
 * @param localPieces equal pieces into which a local block is split
 * @param firstLocalPiece where the first piece goes
 * @param blockTokens tokens per block of the peer
 * @param blockRatio how many of the peer's blocks make a local one
 * @param repeated true if another rank has the same heads, and is read instead
 */
record RemoteGeometry(
        List<BlockRow> rows,
        int pieces,
        int localPieces,
        int firstLocalPiece,
        int blockTokens,
        int blockRatio,
        boolean repeated) {
    /** The one layout in which heads can be told apart. */
    private static final String BY_HEAD = "LBHNC";

    RemoteGeometry {
        rows = List.copyOf(rows);
    }

    /** Blocks of a region. */
    int blocks(int region) {
        return rows.get(region * pieces).count();
    }

    /**
     * Checks untrusted metadata.
     *
     * @param slice what is wanted of it
     * @param maxBlocks limit of the rows' blocks in all
     * @throws ConnectorException naming what differs, with both values
     */
    static RemoteGeometry check(
            String engineId,
            AgentMetadata remote,
            KvCacheRegions local,
            RankMapping.Slice slice,
            int maxBlocks) {
        requireEqual("engine id", engineId, remote.engineId());
        int ratio = blockRatio(remote, local, slice);
        requireEqual("KV cache layout", local.layout(), remote.layout());
        if (ratio > 1 || !slice.isWhole()) {
            requireEqual("KV cache layout, to tell heads apart,", BY_HEAD, remote.layout());
        }
        requireEqual("kernel blocks per block", 1, remote.physicalBlocksPerLogical());
        requireEqual("decode context parallel size", 1, remote.dcpSize());
        requireEqual("prefill context parallel size", 1, remote.pcpSize());
        requireEqual("state sizes", List.of(0L, 0L), remote.ssmSizes());
        requireEqual("packed layers", 0, remote.packedMembers().size());
        if (remote.pleBlockBytes() != null) {
            throw differs("bytes of per-layer embeddings", 0, remote.pleBlockBytes());
        }
        List<KvCacheRegions.Region> regions = local.regions();
        requireEqual("regions", regions.size(), remote.baseAddresses().size());
        requireEqual("regions with block sizes", regions.size(), remote.blockBytes().size());
        requireEqual("regions with strides", regions.size(), remote.blockStrides().size());
        requireEach(
                "region names",
                regions.stream().map(KvCacheRegions.Region::name),
                remote.regionNames());
        requireEach(
                "memory types",
                regions.stream().map(region -> local.kind().name()),
                remote.memoryTypes());
        requireEach("KV cache groups", regions.stream().map(region -> 0L), remote.regionGroups());
        List<Long> counts = remote.regionBlocks();
        if (counts != null) {
            requireEqual("regions with block counts", regions.size(), counts.size());
        }
        int unitHeads = ratio == 1 ? slice.heads() : 1;
        int pieces = slice.heads() / unitHeads;
        List<BlockRow> rows = new ArrayList<>();
        long total = 0;
        for (int i = 0; i < regions.size(); i++) {
            long pieceBytes = pieceBytes(i, regions.get(i), remote, slice, ratio);
            long count = counts == null ? remote.blocks() : counts.get(i);
            total += Math.min(count, Integer.MAX_VALUE) * pieces;
            if (total > maxBlocks) {
                throw new ConnectorException(
                        "peer's blocks: "
                                + total
                                + " or more, limit "
                                + maxBlocks
                                + "; raise maxBlocks of the peer policy if the peer is that large");
            }
            for (int piece = 0; piece < pieces; piece++) {
                long offset = (slice.firstRemoteHead() / unitHeads + piece) * pieceBytes;
                rows.add(row(remote, i, offset, pieceBytes, (int) count, local));
            }
        }
        return new RemoteGeometry(
                rows,
                pieces,
                slice.localHeads() / unitHeads * ratio,
                slice.firstLocalHead() / unitHeads * ratio,
                remote.blockTokens(),
                ratio,
                slice.repeated());
    }

    private static int blockRatio(
            AgentMetadata remote, KvCacheRegions local, RankMapping.Slice slice) {
        int ratio = local.blockTokens() / remote.blockTokens();
        boolean divides = ratio >= 1 && local.blockTokens() % remote.blockTokens() == 0;
        if (!divides || (ratio > 1 && slice.heads() < slice.localHeads())) {
            throw differs("tokens per block", local.blockTokens(), remote.blockTokens());
        }
        return ratio;
    }

    /** Bytes of one piece, once the peer's block has as many as it must have. */
    private static long pieceBytes(
            int index,
            KvCacheRegions.Region region,
            AgentMetadata remote,
            RankMapping.Slice slice,
            int ratio) {
        boolean whole = slice.isWhole() && ratio == 1;
        long parts = whole ? 1 : (long) slice.localHeads() * ratio;
        if (region.blockBytes() % parts != 0) {
            throw new ConnectorException(
                    "handshake: "
                            + region.blockBytes()
                            + " bytes per block of region "
                            + index
                            + " cannot be split into "
                            + parts
                            + " parts");
        }
        long headBytes = region.blockBytes() / parts;
        long remoteBytes = whole ? headBytes : headBytes * slice.remoteHeads();
        requireEqual(
                "bytes per block of region " + index, remoteBytes, remote.blockBytes().get(index));
        if (remote.blockStrides().get(index) < remoteBytes) {
            throw new ConnectorException(
                    "peer's region "
                            + index
                            + ": a stride of "
                            + remote.blockStrides().get(index)
                            + " bytes is below its blocks' "
                            + remoteBytes);
        }
        return whole || ratio > 1 ? headBytes : headBytes * slice.heads();
    }

    private static BlockRow row(
            AgentMetadata remote,
            int region,
            long offset,
            long bytes,
            int count,
            KvCacheRegions local) {
        try {
            return new BlockRow(
                    Math.addExact(remote.baseAddresses().get(region), offset),
                    bytes,
                    remote.blockStrides().get(region),
                    count,
                    local.kind(),
                    remote.deviceId());
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new ConnectorException("peer's region " + region + ": " + e.getMessage(), e);
        }
    }

    private static <T> void requireEach(String what, Stream<T> ours, @Nullable List<T> theirs) {
        if (theirs != null) {
            requireEqual(what, ours.toList(), theirs);
        }
    }

    private static void requireEqual(String what, Object ours, Object theirs) {
        if (!Objects.equals(ours, theirs)) {
            throw differs(what, ours, theirs);
        }
    }

    private static ConnectorException differs(String what, Object ours, Object theirs) {
        return new ConnectorException(
                "handshake: "
                        + what
                        + " differ: here "
                        + Excerpt.of(ours.toString())
                        + ", at the peer "
                        + Excerpt.of(theirs.toString()));
    }
}
