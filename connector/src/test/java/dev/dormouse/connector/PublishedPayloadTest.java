package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.TransportMetadata;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What an engine's side channel serves is what its ranks are. */
final class PublishedPayloadTest {
    private static final int[] P_BLOCKS = {3, 1};
    private static final int[] D_BLOCKS = {4, 5};

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine wideP = world.start(world.config("P").tpSize(2));

    @Test
    void eachRanksMetadataIsServedWithTheEnginesHash() {
        for (int cycle = 0; cycle < 2; cycle++) {
            for (int rank = 0; rank < 2; rank++) {
                HandshakePayload payload =
                        HandshakePayload.decode(wideP.served(new RankId(0, rank)));
                AgentMetadata own = wideP.ranks().get(rank).worker().payload().metadata();
                assertThat(payload.compatibilityHash()).isEqualTo(wideP.config().factors().hash());
                assertThat(AgentMetadataCodec.decode(payload.agentMetadata()))
                        .usingRecursiveComparison()
                        .withStrictTypeChecking()
                        .ignoringFields("baseAddresses")
                        .isEqualTo(own);
                assertThat(AgentMetadataCodec.decode(payload.agentMetadata()).baseAddresses())
                        .containsExactlyElementsOf(own.baseAddresses());
            }
            wideP.sleep();
            wideP.wake();
        }
    }

    @Test
    void memoryKindsHaveVllmsNames() {
        KvCacheRegions host = wideP.rank().regions();
        for (MemoryKind kind : MemoryKind.values()) {
            KvCacheRegions regions =
                    new KvCacheRegions(
                            host.regions(),
                            host.backing(),
                            host.blockTokens(),
                            host.layout(),
                            kind,
                            0);
            String name =
                    switch (kind) {
                        case DRAM -> "DRAM";
                        case VRAM -> "VRAM";
                    };
            assertThat(
                            AgentMetadata.ofAttention(
                                            "P",
                                            TransportMetadata.ofAgent(new byte[1]),
                                            regions,
                                            "FLASH_ATTN")
                                    .memoryTypes())
                    .hasSize(ModelEngine.LAYERS)
                    .containsOnly(name);
        }
    }

    /** All ranks have one epoch, also one whose registration is the old one. */
    @Test
    void aRankThatWasNotRegisteredAgainIsLoadedWithTheOthersExactlyOnce() {
        ModelEngine wideD = world.start(world.config("D").tpSize(2));
        assertTransfers(wideD, 1);
        assertThat(wideD.statistics().handshakes()).as("each rank's own").isEqualTo(2);

        ModelEngine.Rank slept = wideP.ranks().get(1);
        wideP.scheduler().withdraw();
        slept.worker().releaseKvCaches(Duration.ofMillis(200));
        slept.memory().unmap(slept.address(0, 0), wideP.regionBytes());
        slept.memory().map(slept.address(0, 0), wideP.regionBytes());
        wideP.ranks().forEach(rank -> rank.worker().restoreKvCaches());
        wideP.publish();

        for (int content = 2; content < 5; content++) {
            assertTransfers(wideD, content);
            assertThat(wideD.statistics().handshakes()).isEqualTo(4);
        }
    }

    private void assertTransfers(ModelEngine reader, long content) {
        String id = "r" + content;
        reader.decode(id, 8, wideP.prefill("p" + content, 8, P_BLOCKS, content), D_BLOCKS);
        world.settle();
        assertThat(reader.received()).contains(id);
        assertThat(reader.failed()).isEmpty();
        assertThat(reader.holds(D_BLOCKS, content)).isTrue();
    }
}
