package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Only memory that can be read block by block is let through. */
final class RemoteGeometryTest {
    private static final KvCacheRegions LOCAL = new ModelWorld().start("P").rank().regions();
    private static final AgentMetadata FITTING =
            AgentMetadata.ofAttention(
                    "P", TransportMetadata.ofAgent(new byte[] {1}), LOCAL, "FLASH_ATTN");

    @Test
    void anEqualPeerIsAccepted() {
        RemoteGeometry geometry = check(FITTING);
        assertThat(geometry.rows()).hasSize(ModelEngine.LAYERS);
        assertThat(geometry.rows().getFirst().count()).isEqualTo(ModelEngine.BLOCKS);
    }

    @Test
    void aPeerMayHaveAnotherNumberOfBlocksAndTellLess() {
        AgentMetadata other =
                with(
                        Map.of(
                                "blocks", 7,
                                "regionBlocks", "none",
                                "regionGroups", "none",
                                "regionNames", "none",
                                "memoryTypes", "none"));
        assertThat(check(other).rows().getLast().count()).isEqualTo(7);
    }

    @Test
    void eachDifferenceIsNamedWithBothValues() {
        assertRefused(Map.of("engineId", "Q"), "engine id differ: here 'P', at the peer 'Q'");
        assertRefused(
                Map.of("blockTokens", 32), "tokens per block differ: here '4', at the peer '32'");
        assertRefused(Map.of("layout", "LBNHC"), "'LBHNC', at the peer 'LBNHC'");
        assertRefused(Map.of("ssm", List.of(0L, 8L)), "state sizes");
        assertRefused(Map.of("physical", 2), "kernel blocks");
        assertRefused(Map.of("dcp", 2), "decode context");
        assertRefused(Map.of("pcp", 2), "prefill context");
        assertRefused(Map.of("ple", 64L), "per-layer embeddings");
        assertRefused(Map.of("packed", Map.of("a", List.of(0L, 1L))), "packed layers");
        assertRefused(Map.of("bases", List.of(4096L)), "regions differ: here '2', at the peer '1'");
        assertRefused(Map.of("lengths", List.of(48L)), "regions with block sizes");
        assertRefused(Map.of("strides", List.of(64L)), "regions with strides");
        assertRefused(Map.of("lengths", List.of(48L, 64L)), "bytes per block of region 1");
        assertRefused(Map.of("regionBlocks", List.of(1L)), "block counts");
        assertRefused(Map.of("regionNames", List.of("layers.1", "layers.0")), "region names");
        assertRefused(Map.of("memoryTypes", List.of("DRAM", "VRAM")), "memory types");
        assertRefused(Map.of("regionGroups", List.of(0L, 1L)), "KV cache groups");
    }

    @Test
    void extentsThatNoAddressSpaceHasAreRefused() {
        assertRefused(Map.of("strides", List.of(47L, 64L)), "region 0");
        assertRefused(Map.of("strides", List.of(Long.MAX_VALUE, 64L)), "region 0");
        assertRefused(Map.of("bases", List.of(Long.MAX_VALUE - 10, 4096L)), "region 0");
        assertRefused(Map.of("regionBlocks", List.of(1L << 31, 1L)), "limit 1000");
        assertRefused(Map.of("regionBlocks", List.of(501L, 500L)), "limit 1000");
        assertThat(check(with(Map.of("regionBlocks", List.of(500L, 500L)))).blocks(1))
                .isEqualTo(500);
    }

    @Test
    void ofMoreHeadsThanAreWantedEachRegionHasOneRow() {
        RankMapping.Slice half = RankMapping.of(1, 2, 1, 4).slices().getFirst();
        AgentMetadata four =
                with(
                        Map.of(
                                "layout", "LBHNC",
                                "lengths", List.of(96L, 96L),
                                "strides", List.of(128L, 128L),
                                "regionBlocks", List.of(5L, 7L)));
        RemoteGeometry geometry = RemoteGeometry.check("P", four, LOCAL, half, 12);
        assertThat(geometry.pieces()).isEqualTo(1);
        assertThat(geometry.blocks(0)).isEqualTo(5);
        assertThat(geometry.blocks(1)).isEqualTo(7);
        assertThat(geometry.rows().getFirst().address())
                .as("the second half of each block")
                .isEqualTo(FITTING.baseAddresses().getFirst() + 48);
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> RemoteGeometry.check("P", four, LOCAL, half, 11))
                .withMessageContaining("limit 11");
    }

    @Test
    void ofSmallerBlocksEachHeadHasItsOwnRowsAndThoseCount() {
        RankMapping.Slice whole = RankMapping.of(0, 1, 1, 2).slices().getFirst();
        AgentMetadata small =
                with(
                        Map.of(
                                "blockTokens", 2,
                                "lengths", List.of(24L, 24L),
                                "strides", List.of(32L, 32L),
                                "regionBlocks", List.of(5L, 7L)));
        RemoteGeometry geometry = RemoteGeometry.check("P", small, LOCAL, whole, 24);
        assertThat(geometry.blockRatio()).isEqualTo(2);
        assertThat(geometry.pieces()).isEqualTo(2);
        assertThat(geometry.localPieces()).isEqualTo(4);
        assertThat(geometry.rows()).extracting(BlockRow::count).containsExactly(5, 5, 7, 7);
        assertThat(geometry.blocks(1)).isEqualTo(7);
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> RemoteGeometry.check("P", small, LOCAL, whole, 23));
    }

    @Test
    void headsThatTheLayoutDoesNotKeepTogetherCannotBeTakenApart() {
        KvCacheRegions byToken =
                new KvCacheRegions(
                        LOCAL.regions(),
                        LOCAL.backing(),
                        ModelEngine.BLOCK_TOKENS,
                        "LBNHC",
                        LOCAL.kind(),
                        0);
        AgentMetadata wide =
                with(
                        Map.of(
                                "layout",
                                "LBNHC",
                                "lengths",
                                List.of(96L, 96L),
                                "strides",
                                List.of(128L, 128L)));
        RankMapping.Slice half = RankMapping.of(1, 2, 1, 4).slices().getFirst();
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> RemoteGeometry.check("P", wide, byToken, half, 1_000))
                .withMessageContaining("to tell heads apart");
        AgentMetadata fine =
                with(Map.of("layout", "LBNHC", "blockTokens", 2, "lengths", List.of(24L, 24L)));
        RankMapping.Slice whole = RankMapping.of(0, 1, 1, 2).slices().getFirst();
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> RemoteGeometry.check("P", fine, byToken, whole, 1_000))
                .withMessageContaining("to tell heads apart");
        assertThat(
                        RemoteGeometry.check(
                                        "P", with(Map.of("layout", "LBNHC")), byToken, whole, 1_000)
                                .pieces())
                .as("whole blocks need not be")
                .isEqualTo(1);
    }

    private static RemoteGeometry check(AgentMetadata remote) {
        RankMapping.Slice slice = RankMapping.of(0, 1, 1, 2).slices().getFirst();
        return RemoteGeometry.check("P", remote, LOCAL, slice, 1_000);
    }

    private static void assertRefused(Map<String, Object> changes, String message) {
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> check(with(changes)))
                .withMessageContaining(message);
    }

    /** Fitting metadata but for the named fields; "none" stands for a field that is not told. */
    @SuppressWarnings("unchecked")
    private static AgentMetadata with(Map<String, Object> changes) {
        return new AgentMetadata(
                (String) changes.getOrDefault("engineId", "P"),
                TransportMetadata.ofAgent(new byte[] {1}),
                (List<Long>) changes.getOrDefault("bases", FITTING.baseAddresses()),
                0,
                (int) changes.getOrDefault("blocks", ModelEngine.BLOCKS),
                (List<Long>) changes.getOrDefault("lengths", FITTING.blockBytes()),
                (List<Long>) changes.getOrDefault("strides", FITTING.blockStrides()),
                (String) changes.getOrDefault("layout", "LBHNC"),
                (int) changes.getOrDefault("blockTokens", ModelEngine.BLOCK_TOKENS),
                (List<Long>) changes.getOrDefault("ssm", List.of(0L, 0L)),
                "FLASH_ATTN",
                (int) changes.getOrDefault("physical", 1),
                listOrNull(changes, "regionBlocks", FITTING.regionBlocks()),
                listOrNull(changes, "regionGroups", FITTING.regionGroups()),
                listOrNull(changes, "regionNames", FITTING.regionNames()),
                listOrNull(changes, "memoryTypes", FITTING.memoryTypes()),
                (int) changes.getOrDefault("dcp", 1),
                (int) changes.getOrDefault("pcp", 1),
                (Long) changes.get("ple"),
                List.of(),
                (Map<String, List<Long>>) changes.getOrDefault("packed", Map.of()));
    }

    @SuppressWarnings("unchecked")
    private static <T> @Nullable List<T> listOrNull(
            Map<String, Object> changes, String key, @Nullable List<T> fallback) {
        Object change = changes.get(key);
        if (change == null) {
            return fallback;
        }
        return change instanceof List<?> list ? (List<T>) list : null;
    }
}
