package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.TransportMetadata;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Bytes obtained from vLLM 0.33.0 itself, and what its decoder takes and refuses. */
final class AgentMetadataCodecTest {
    private static final byte[] GOLDEN =
            HexFormat.of()
                    .parseHex(
                            "de0015a9656e67696e655f6964a26531ae6167656e745f6d65746164617461c4024147b36b765f6361"
                                    + "636865735f626173655f6164647291cf00007f0000000000a96465766963655f696400aa6e756d"
                                    + "5f626c6f636b7304aa626c6f636b5f6c656e739140ad626c6f636b5f737472696465739140af6b"
                                    + "765f63616368655f6c61796f7574a54c42484e43aa626c6f636b5f73697a6510a973736d5f7369"
                                    + "7a6573920000b16174746e5f6261636b656e645f6e616d65aa464c4153485f4154544ed9247068"
                                    + "79736963616c5f626c6f636b735f7065725f6c6f676963616c5f6b765f626c6f636b01b1726567"
                                    + "696f6e5f6e756d5f626c6f636b739104b0726567696f6e5f67726f75705f6964739100ac726567"
                                    + "696f6e5f6e616d657391bd6d6f64656c2e6c61796572732e302e73656c665f6174746e2e617474"
                                    + "6eb0726567696f6e5f6d656d5f747970657391a45652414da86463705f73697a6501a87063705f"
                                    + "73697a6501ad706c655f626c6f636b5f6c656ec0ae726567696f6e5f6d656d6265727390b57061"
                                    + "636b65645f6d656d6265725f6c61796f75747381a161920040");

    private static AgentMetadata golden() {
        return of(TransportMetadata.ofAgent("AG".getBytes(UTF_8)));
    }

    private static AgentMetadata of(TransportMetadata agentMetadata) {
        return new AgentMetadata(
                "e1",
                agentMetadata,
                List.of(0x7f00_0000_0000L),
                0,
                4,
                List.of(64L),
                List.of(64L),
                "LBHNC",
                16,
                List.of(0L, 0L),
                "FLASH_ATTN",
                1,
                List.of(4L),
                List.of(0L),
                List.of("model.layers.0.self_attn.attn"),
                List.of("VRAM"),
                1,
                1,
                null,
                List.of(),
                Map.of("a", List.of(0L, 64L)));
    }

    @Test
    void metadataIsWrittenByteForByteAsVllmWritesIt() {
        assertThat(AgentMetadataCodec.encode(golden())).isEqualTo(GOLDEN);
    }

    @Test
    void vllmsBytesAreReadBack() {
        AgentMetadata read = AgentMetadataCodec.decode(GOLDEN);
        assertThat(read)
                .usingRecursiveComparison()
                .withStrictTypeChecking()
                .ignoringFields("baseAddresses")
                .isEqualTo(golden());
        assertThat(read.baseAddresses()).containsExactly(0x7f00_0000_0000L);
    }

    @Test
    void whatIsForTheSameHostIsOneKeyBehindVllms() {
        TransportMetadata both = new TransportMetadata("AG".getBytes(UTF_8), new byte[] {1, 2});
        byte[] bytes = AgentMetadataCodec.encode(of(both));
        byte[] added = new WireWriter().string("same_host").binary(new byte[] {1, 2}).bytes();
        assertThat(bytes).hasSize(GOLDEN.length + added.length).endsWith(added);
        assertThat(bytes[2]).isEqualTo((byte) 22);
        assertThat(AgentMetadataCodec.decode(bytes).agentMetadata()).isEqualTo(both);
        assertThat(AgentMetadataCodec.decode(GOLDEN).agentMetadata().sameHost()).isEmpty();
    }

    @Test
    void keysMayComeInAnyOrderAndUnknownOnesAreIgnored() {
        WireWriter out = new WireWriter().map(14);
        out.string("attn_backend_name").string("B");
        out.string("a_key_of_tomorrow").map(1).string("x").array(2).integer(1).float64(2);
        out.string("physical_blocks_per_logical_kv_block").integer(1);
        out.string("ssm_sizes").integers(List.of(0L, 0L));
        out.string("block_size").integer(16);
        out.string("kv_cache_layout").string("LBHNC");
        out.string("block_strides").integers(List.of(8L));
        out.string("block_lens").integers(List.of(8L));
        out.string("num_blocks").integer(2);
        out.string("device_id").integer(0);
        out.string("kv_caches_base_addr").integers(List.of(4096L));
        out.string("agent_metadata").binary(new byte[] {1});
        out.string("engine_id").string("e");
        out.string("another").binary(new byte[3]);

        AgentMetadata read = AgentMetadataCodec.decode(out.bytes());

        assertThat(read.engineId()).isEqualTo("e");
        assertThat(read.regionNames()).isNull();
        assertThat(read.dcpSize()).isEqualTo(1);
        assertThat(read.regionMembers()).isEmpty();
    }

    @Test
    void whatMsgspecRefusesIsRefused() {
        assertRefused(withEngineId(out -> out.binary("e1".getBytes(UTF_8))), "engine_id");
        assertRefused(withEngineId(out -> out.integer(1)), "engine_id");
        assertRefused(with("agent_metadata", out -> out.string("AG")), "agent_metadata");
        assertRefused(with("num_blocks", out -> out.float64(4)), "num_blocks");
        assertRefused(with("ssm_sizes", out -> out.integers(List.of(0L))), "ssm_sizes");
        assertRefused(with("ssm_sizes", out -> out.integers(List.of(0L, 0L, 0L))), "ssm_sizes");
        assertRefused(new WireWriter().array(1).string("e1").bytes(), "MAP");
        assertRefused(new WireWriter().map(1).string("engine_id").string("e").bytes(), "missing");
        assertRefused(Arrays.copyOf(GOLDEN, GOLDEN.length + 1), "follow");
    }

    @Test
    void numbersThatNoMemoryHasAreRefused() {
        assertRefused(with("num_blocks", out -> out.integer(0)), "num_blocks");
        assertRefused(with("num_blocks", out -> out.integer(1L << 31)), "num_blocks");
        assertRefused(with("device_id", out -> out.integer(-1)), "device_id");
        assertRefused(with("block_lens", out -> out.integers(List.of(-64L))), "block_lens");
        assertRefused(with("kv_caches_base_addr", out -> out.integers(List.of(0L))), "base_addr");
    }

    @Test
    void announcedSizesAreCheckedBeforeMemoryIsTaken() {
        byte[] array = {(byte) 0x81, (byte) 0xaa, 'b', 'l', 'o', 'c', 'k', '_', 'l', 'e', 'n', 's'};
        for (int header : new int[] {0xdd, 0xdf, 0xdb, 0xc6}) {
            byte[] huge = Arrays.copyOf(array, array.length + 5);
            huge[array.length] = (byte) header;
            huge[array.length + 1] = 0x7f;
            huge[array.length + 2] = (byte) 0xff;
            assertThatExceptionOfType(WireException.class)
                    .isThrownBy(() -> AgentMetadataCodec.decode(huge));
        }
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(
                        () -> AgentMetadataCodec.decode(new byte[AgentMetadataCodec.MAX_BYTES + 1]))
                .withMessageContaining("limit");
    }

    @Test
    void nestingIsBounded() {
        WireWriter out = new WireWriter().map(1).string("x");
        for (int depth = 0; depth < 100_000; depth++) {
            out.array(1);
        }
        assertRefused(out.integer(1).bytes(), "nested");
    }

    @Test
    void damagedBytesAreReadOrRefusedAndNothingElse() {
        Seeded.forAll(
                3_000,
                random -> {
                    byte[] damaged = GOLDEN.clone();
                    int flips = random.nextInt(1, 6);
                    for (int i = 0; i < flips; i++) {
                        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
                    }
                    if (random.nextBoolean()) {
                        damaged = Arrays.copyOf(damaged, random.nextInt(damaged.length + 8));
                    }
                    try {
                        assertThat(AgentMetadataCodec.decode(damaged).engineId()).isNotNull();
                    } catch (WireException expected) {
                        assertThat(expected).hasMessageStartingWith("decode agent metadata");
                    }
                });
    }

    @Test
    void everyTruncationIsRefused() {
        for (int length = 0; length < GOLDEN.length; length++) {
            byte[] cut = Arrays.copyOf(GOLDEN, length);
            assertThatExceptionOfType(WireException.class)
                    .isThrownBy(() -> AgentMetadataCodec.decode(cut));
        }
    }

    private static byte[] withEngineId(Consumer<WireWriter> value) {
        return with("engine_id", value);
    }

    /** Metadata that is right but for one field. */
    private static byte[] with(String key, Consumer<WireWriter> value) {
        WireWriter out = new WireWriter().map(1).string(key);
        value.accept(out);
        byte[] field = Arrays.copyOfRange(out.bytes(), 1, out.bytes().length);
        byte[] joined = new byte[GOLDEN.length + field.length];
        System.arraycopy(GOLDEN, 0, joined, 0, GOLDEN.length);
        System.arraycopy(field, 0, joined, GOLDEN.length, field.length);
        joined[2]++;
        return joined;
    }

    private static void assertRefused(byte[] bytes, String message) {
        assertThatExceptionOfType(WireException.class)
                .isThrownBy(() -> AgentMetadataCodec.decode(bytes))
                .withMessageContaining(message);
    }
}
