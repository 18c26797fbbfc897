package dev.dormouse.connector;

import dev.dormouse.transport.BlockRow;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A peer rank's memory, checked against this rank's: only what can be read block by block is let
 * through.
 *
 * @param rows one per region
 */
record RemoteGeometry(List<BlockRow> rows) {
    RemoteGeometry {
        rows = List.copyOf(rows);
    }

    /** Blocks that every region has. */
    int blocks() {
        return rows.stream().mapToInt(BlockRow::count).min().orElse(0);
    }

    /**
     * Checks untrusted metadata.
     *
     * @throws ConnectorException naming what differs, with both values
     */
    static RemoteGeometry check(String engineId, AgentMetadata remote, KvCacheRegions local) {
        requireEqual("engine id", engineId, remote.engineId());
        requireEqual("tokens per block", local.blockTokens(), remote.blockTokens());
        requireEqual("KV cache layout", local.layout(), remote.layout());
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
        List<BlockRow> rows = new ArrayList<>();
        long total = 0;
        for (int i = 0; i < regions.size(); i++) {
            requireEqual(
                    "bytes per block of region " + i,
                    regions.get(i).blockBytes(),
                    remote.blockBytes().get(i));
            long count = counts == null ? remote.blocks() : counts.get(i);
            total += count;
            if (total > Integer.MAX_VALUE) {
                throw new ConnectorException("peer's blocks: " + total + " cannot be indexed");
            }
            rows.add(row(remote, i, (int) count, local));
        }
        return new RemoteGeometry(rows);
    }

    private static BlockRow row(AgentMetadata remote, int region, int count, KvCacheRegions local) {
        try {
            return new BlockRow(
                    remote.baseAddresses().get(region),
                    remote.blockBytes().get(region),
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
