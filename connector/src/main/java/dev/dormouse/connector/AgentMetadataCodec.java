package dev.dormouse.connector;

import dev.dormouse.transport.TransportMetadata;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * {@link AgentMetadata} as vLLM's msgspec writes it: a map with all 21 keys in declaration order,
 * and behind them {@code same_host}, if there is something to tell; read by key, in any order,
 * unknown keys ignored, the last nine of vLLM's optional.
 */
final class AgentMetadataCodec {
    static final int MAX_BYTES = 16 << 20;
    private static final int MAX_KEYS = 64;
    private static final int MAX_REGIONS = 16_384;
    private static final int MAX_NAME_BYTES = 4_096;

    private AgentMetadataCodec() {}

    static byte[] encode(AgentMetadata metadata) {
        byte[] sameHost = metadata.agentMetadata().sameHost();
        WireWriter out = new WireWriter().map(sameHost.length == 0 ? 21 : 22);
        out.string("engine_id").string(metadata.engineId());
        out.string("agent_metadata").binary(metadata.agentMetadata().agent());
        out.string("kv_caches_base_addr").integers(metadata.baseAddresses());
        out.string("device_id").integer(metadata.deviceId());
        out.string("num_blocks").integer(metadata.blocks());
        out.string("block_lens").integers(metadata.blockBytes());
        out.string("block_strides").integers(metadata.blockStrides());
        out.string("kv_cache_layout").string(metadata.layout());
        out.string("block_size").integer(metadata.blockTokens());
        out.string("ssm_sizes").integers(metadata.ssmSizes());
        out.string("attn_backend_name").string(metadata.attentionBackend());
        out.string("physical_blocks_per_logical_kv_block")
                .integer(metadata.physicalBlocksPerLogical());
        out.string("region_num_blocks").orNil(metadata.regionBlocks(), out::integers);
        out.string("region_group_ids").orNil(metadata.regionGroups(), out::integers);
        out.string("region_names").orNil(metadata.regionNames(), out::strings);
        out.string("region_mem_types").orNil(metadata.memoryTypes(), out::strings);
        out.string("dcp_size").integer(metadata.dcpSize());
        out.string("pcp_size").integer(metadata.pcpSize());
        out.string("ple_block_len").orNil(metadata.pleBlockBytes(), out::integer);
        out.string("region_members").list(metadata.regionMembers(), out::strings);
        out.string("packed_member_layouts").map(metadata.packedMembers().size());
        metadata.packedMembers().forEach((layer, place) -> out.string(layer).integers(place));
        if (sameHost.length > 0) {
            out.string("same_host").binary(sameHost);
        }
        return out.bytes();
    }

    /**
     * @throws WireException if the bytes are not agent metadata
     */
    static AgentMetadata decode(byte[] bytes) {
        WireReader in = new WireReader("agent metadata", bytes, MAX_BYTES);
        Fields fields = new Fields(in);
        int entries = in.mapSize("agent metadata", MAX_KEYS);
        for (int i = 0; i < entries; i++) {
            fields.read(in.string("a key", MAX_NAME_BYTES));
        }
        in.end();
        return fields.metadata();
    }

    /** What was read so far. */
    private static final class Fields {
        private final WireReader in;
        private @Nullable String engineId;
        private byte @Nullable [] agentMetadata;
        private byte[] sameHost = {};
        private @Nullable List<Long> baseAddresses;
        private @Nullable Long deviceId;
        private @Nullable Long blocks;
        private @Nullable List<Long> blockBytes;
        private @Nullable List<Long> blockStrides;
        private @Nullable String layout;
        private @Nullable Long blockTokens;
        private @Nullable List<Long> ssmSizes;
        private @Nullable String attentionBackend;
        private @Nullable Long physicalBlocksPerLogical;
        private @Nullable List<Long> regionBlocks;
        private @Nullable List<Long> regionGroups;
        private @Nullable List<String> regionNames;
        private @Nullable List<String> memoryTypes;
        private long dcpSize = 1;
        private long pcpSize = 1;
        private @Nullable Long pleBlockBytes;
        private List<List<String>> regionMembers = List.of();
        private Map<String, List<Long>> packedMembers = Map.of();

        Fields(WireReader in) {
            this.in = in;
        }

        void read(String key) {
            switch (key) {
                case "engine_id" -> engineId = name(key);
                case "agent_metadata" -> agentMetadata = in.binary(key, MAX_BYTES);
                case "same_host" -> sameHost = in.binary(key, MAX_BYTES);
                case "kv_caches_base_addr" -> baseAddresses = integers(key, 1);
                case "device_id" -> deviceId = count(key, 0);
                case "num_blocks" -> blocks = count(key, 1);
                case "block_lens" -> blockBytes = integers(key, 1);
                case "block_strides" -> blockStrides = integers(key, 1);
                case "kv_cache_layout" -> layout = name(key);
                case "block_size" -> blockTokens = count(key, 1);
                case "ssm_sizes" -> ssmSizes = pair(key);
                case "attn_backend_name" -> attentionBackend = name(key);
                case "physical_blocks_per_logical_kv_block" ->
                        physicalBlocksPerLogical = count(key, 1);
                case "region_num_blocks" -> regionBlocks = in.orNull(() -> integers(key, 1));
                case "region_group_ids" -> regionGroups = in.orNull(() -> integers(key, -1));
                case "region_names" -> regionNames = in.orNull(() -> names(key));
                case "region_mem_types" -> memoryTypes = in.orNull(() -> names(key));
                case "dcp_size" -> dcpSize = count(key, 1);
                case "pcp_size" -> pcpSize = count(key, 1);
                case "ple_block_len" ->
                        pleBlockBytes = in.orNull(() -> in.integer(key, 0, Long.MAX_VALUE));
                case "region_members" ->
                        regionMembers = in.list(key, MAX_REGIONS, () -> names(key));
                case "packed_member_layouts" -> packedMembers = packedMembers(key);
                default -> in.skip("an unknown key");
            }
        }

        AgentMetadata metadata() {
            return new AgentMetadata(
                    required("engine_id", engineId),
                    new TransportMetadata(required("agent_metadata", agentMetadata), sameHost),
                    required("kv_caches_base_addr", baseAddresses),
                    required("device_id", deviceId).intValue(),
                    required("num_blocks", blocks).intValue(),
                    required("block_lens", blockBytes),
                    required("block_strides", blockStrides),
                    required("kv_cache_layout", layout),
                    required("block_size", blockTokens).intValue(),
                    required("ssm_sizes", ssmSizes),
                    required("attn_backend_name", attentionBackend),
                    required("physical_blocks_per_logical_kv_block", physicalBlocksPerLogical)
                            .intValue(),
                    regionBlocks,
                    regionGroups,
                    regionNames,
                    memoryTypes,
                    (int) dcpSize,
                    (int) pcpSize,
                    pleBlockBytes,
                    regionMembers,
                    packedMembers);
        }

        private <T> T required(String key, @Nullable T value) {
            if (value == null) {
                throw in.fault("key " + key + " is missing");
            }
            return value;
        }

        private String name(String key) {
            return in.string(key, MAX_NAME_BYTES);
        }

        private List<String> names(String key) {
            return in.strings(key, MAX_REGIONS, MAX_NAME_BYTES);
        }

        private long count(String key, long min) {
            return in.integer(key, min, Integer.MAX_VALUE);
        }

        private List<Long> integers(String key, long min) {
            return in.integers(key, MAX_REGIONS, min, Long.MAX_VALUE);
        }

        private List<Long> pair(String key) {
            List<Long> pair = in.integers(key, 2, 0, Long.MAX_VALUE);
            if (pair.size() != 2) {
                throw in.fault(key + " has " + pair.size() + " elements, not 2");
            }
            return pair;
        }

        private Map<String, List<Long>> packedMembers(String key) {
            Map<String, List<Long>> members = new LinkedHashMap<>();
            int entries = in.mapSize(key, MAX_REGIONS);
            for (int i = 0; i < entries; i++) {
                members.put(name(key), pair(key));
            }
            return members;
        }
    }
}
