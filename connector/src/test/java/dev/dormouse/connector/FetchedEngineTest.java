package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Whether the answers of a peer's ranks fit together. */
final class FetchedEngineTest {
    private static final SideChannelAddress ADDRESS = new SideChannelAddress("127.0.0.1", 5600);

    private final KvCacheRegions local = new ModelWorld().start("D").rank().regions();

    @Test
    void allRanksOfAPeerHaveAsManyBlocksInEachRegion() {
        FetchedEngine fitting = decode(List.of(5L, 7L), List.of(5L, 7L));
        assertThat(fitting.ranks()).hasSize(2);
        assertThat(fitting.identity()).isEqualTo(new RegistrationIdentity("pi", 4, 4));
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> decode(List.of(5L, 7L), List.of(5L, 8L)))
                .withMessageContaining("have 7 and 8 blocks in region 1");
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> decode(List.of(5L, 7L), List.of(4L, 7L)))
                .withMessageContaining("have 5 and 4 blocks in region 0");
    }

    /** Two ranks with one head each, and so many blocks per region. */
    private FetchedEngine decode(List<Long> first, List<Long> second) {
        List<byte[]> payloads = new ArrayList<>();
        for (List<Long> blocks : List.of(first, second)) {
            AgentMetadata metadata =
                    new AgentMetadata(
                            "P",
                            TransportMetadata.ofAgent(new byte[] {1}),
                            List.of(4_096L, 8_192L),
                            0,
                            9,
                            List.of(24L, 24L),
                            List.of(32L, 32L),
                            "LBHNC",
                            ModelEngine.BLOCK_TOKENS,
                            List.of(0L, 0L),
                            "FLASH_ATTN",
                            1,
                            blocks,
                            null,
                            null,
                            null,
                            1,
                            1,
                            null,
                            List.of(),
                            Map.of());
            payloads.add(
                    new HandshakePayload(
                                    ModelEngine.FACTORS.hash(),
                                    AgentMetadataCodec.encode(metadata),
                                    4,
                                    "pi")
                            .encode());
        }
        return FetchedEngine.decode(
                "P",
                ADDRESS,
                new HandshakeAnswers(payloads, null, Map.of()),
                RankMapping.of(0, 1, 2, 2),
                0,
                Params.config("D").build(),
                local);
    }
}
