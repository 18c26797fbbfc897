package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Natives;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What a caller does wrong is told in Java, and neither kills the process nor changes anything. */
class MisuseTest {
    private static final int BLOCKS = 16;
    private static final int BLOCK_BYTES = 4096;

    private static NixlAgent agent;
    private static NixlAgent other;
    private static Region region;
    private static Region otherRegion;
    private static RemoteAgent remote;
    private static LocalList local;
    private static RemoteList from;

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        agent = NixlAgent.create(NixlAgentConfig.builder("misuser").build());
        agent.createBackend("UCX", Map.of());
        other = NixlAgent.create(NixlAgentConfig.builder("neighbour").build());
        other.createBackend("UCX", Map.of());
        region = new Region(agent, BLOCKS * BLOCK_BYTES);
        otherRegion = new Region(other, BLOCKS * BLOCK_BYTES);
        Pattern.fill(otherRegion.memory, 5);
        remote = agent.load(other.localMetadata());
        local = agent.prepare(region.blocks(BLOCK_BYTES, BLOCKS));
        from = remote.prepare(otherRegion.blocks(BLOCK_BYTES, BLOCKS));
    }

    @AfterAll
    static void stop() {
        if (from != null) {
            from.close();
            local.close();
            remote.close();
            region.close();
            otherRegion.close();
            agent.close();
            other.close();
        }
    }

    @Test
    void indicesOutsideTheListsAreRefused() {
        assertRefused(new int[] {0, BLOCKS}, new int[] {0, 1}, "local index 16 at position 1");
        assertRefused(new int[] {-1}, new int[] {0}, "local index -1 at position 0");
        assertRefused(new int[] {0}, new int[] {Integer.MAX_VALUE}, "remote index 2147483647");
        assertRefused(new int[] {0}, new int[] {Integer.MIN_VALUE}, "remote index -2147483648");
    }

    @Test
    void indicesMustPair() {
        assertRefused(new int[] {0, 1}, new int[] {0}, "local indices=2, remote indices=1");
        assertRefused(new int[0], new int[0], "local indices=0, remote indices=0");
    }

    @Test
    void lengthsMustPair() {
        try (RemoteList halves = remote.prepare(otherRegion.blocks(BLOCK_BYTES / 2, BLOCKS))) {
            int[] one = {0};
            assertThatThrownBy(
                            () ->
                                    agent.createTransfer(
                                            TransferOperation.READ, local, one, halves, one))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("local=4096 remote=2048");
        }
        long address = otherRegion.memory.address();
        BlockList mixed =
                BlockList.builder(MemoryType.DRAM)
                        .add(address, BLOCK_BYTES, 0)
                        .add(address + BLOCK_BYTES, 8, 0)
                        .build();
        try (RemoteList odd = remote.prepare(mixed)) {
            int[] two = {0, 1};
            assertThatThrownBy(
                            () ->
                                    agent.createTransfer(
                                            TransferOperation.READ, local, two, odd, two))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("position 1 differ: local=4096 remote=8");
        }
        assertThatThrownBy(
                        () ->
                                agent.createTransfer(
                                        TransferOperation.READ,
                                        region.blocks(BLOCK_BYTES, 2),
                                        remote,
                                        mixed))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("position 1 differ");
        assertThatThrownBy(
                        () ->
                                agent.createTransfer(
                                        TransferOperation.READ,
                                        region.blocks(BLOCK_BYTES, 3),
                                        remote,
                                        mixed))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("local blocks=3 and remote blocks=2");
    }

    @Test
    void objectsOfAnotherAgentAreRefused() {
        int[] one = {0};
        assertThatThrownBy(
                        () -> other.createTransfer(TransferOperation.READ, local, one, from, one))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("belongs to agent misuser, not to neighbour");
        assertThatThrownBy(() -> agent.partialMetadata(List.of(otherRegion.registration())))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("belongs to agent neighbour");
    }

    @Test
    void closedObjectsAreRefused() {
        LocalList closed = agent.prepare(region.blocks(BLOCK_BYTES, BLOCKS));
        closed.close();
        closed.close();
        int[] one = {0};

        assertThatThrownBy(
                        () -> agent.createTransfer(TransferOperation.READ, closed, one, from, one))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageMatching("create transfer refused: local list#\\d+ is closed");
        Transfer transfer = agent.createTransfer(TransferOperation.READ, local, one, from, one);
        assertThatThrownBy(transfer::state)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("was never posted");
        transfer.close();
        assertThatThrownBy(transfer::post).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(transfer::state).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(transfer::telemetry).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void localBlocksOutsideRegistrationsAreRefused() {
        long address = region.memory.address();
        for (BlockList blocks :
                List.of(
                        one(address - 1, 2, 0),
                        one(address + region.memory.byteSize() - 1, 2, 0),
                        one(address, 1, 7),
                        BlockList.builder(MemoryType.DRAM)
                                .addStrided(address, BLOCK_BYTES, BLOCK_BYTES, BLOCKS + 1, 0)
                                .build(),
                        BlockList.builder(MemoryType.VRAM).add(address, 1, 0).build())) {
            assertThatThrownBy(() -> agent.prepare(blocks))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("no registration holds");
        }
    }

    @Test
    void remoteBlocksOutsideTheMetadataAreRefusedByNixl() {
        long address = otherRegion.memory.address();
        assertThatThrownBy(() -> remote.prepare(one(address - 1, 2, 0)))
                .isInstanceOfSatisfying(
                        NixlStatusException.class,
                        e -> {
                            assertThat(e.operation()).isEqualTo("prepare blocks");
                            assertThat(e.status()).isEqualTo(NixlStatus.NOT_FOUND);
                            assertThat(e.agent()).isEqualTo("misuser");
                            assertThat(e.peer()).isEqualTo("neighbour");
                        })
                .hasMessageContaining("NOT_FOUND (-6)");
        assertThat(remote.isLost()).isFalse();
        assertThatThrownBy(
                        () ->
                                agent.createTransfer(
                                        TransferOperation.READ,
                                        one(region.memory.address(), 2, 0),
                                        remote,
                                        one(address - 1, 2, 0)))
                .isInstanceOf(NixlStatusException.class);
        assertThat(remote.isLost()).isFalse();
    }

    @Test
    void blocksBeyondTheAddressSpaceAreRefused() {
        BlockList.Builder blocks = BlockList.builder(MemoryType.DRAM);
        for (long[] bad :
                new long[][] {
                    {-1, 1, 1, 1, 0},
                    {8, 0, 1, 1, 0},
                    {8, 1, 0, 1, 0},
                    {8, 1, 1, 0, 0},
                    {8, 1, 1, 1, -1},
                    {Long.MAX_VALUE, 1, 1, 1, 0},
                    {8, Long.MAX_VALUE / 2, 8, 4, 0},
                    {8, 1, 1, BlockList.MAX_BLOCKS + 1, 0}
                }) {
            assertThatThrownBy(
                            () -> blocks.addStrided(bad[0], bad[1], bad[2], (int) bad[3], bad[4]))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("add blocks refused");
        }
        assertThatThrownBy(blocks::build).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void overlappingRegistrationsAreRefused() {
        MemorySegment memory = region.memory;
        for (MemorySegment overlap :
                List.of(
                        memory,
                        memory.asSlice(0, 1),
                        memory.asSlice(memory.byteSize() - 1, 1),
                        MemorySegment.ofAddress(memory.address() - 4096)
                                .reinterpret(memory.byteSize() + 8192))) {
            assertThatThrownBy(
                            () ->
                                    agent.register(
                                            MemoryType.DRAM, List.of(MemoryRange.host(overlap))))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("overlaps registration#");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment fresh = arena.allocate(8192, 4096);
            List<MemoryRange> twice =
                    List.of(MemoryRange.host(fresh), MemoryRange.host(fresh.asSlice(4096)));
            assertThatThrownBy(() -> agent.register(MemoryType.DRAM, twice))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("overlaps 0x");
            agent.register(
                            MemoryType.DRAM,
                            List.of(
                                    MemoryRange.host(fresh.asSlice(4096)),
                                    MemoryRange.host(fresh.asSlice(0, 4096)),
                                    new MemoryRange(fresh, 1)))
                    .close();
        }
    }

    @Test
    void memoryThatIsNotThereIsRefused() {
        MemorySegment closed;
        try (Arena arena = Arena.ofConfined()) {
            closed = arena.allocate(4096);
        }
        assertThatThrownBy(() -> agent.register(MemoryType.DRAM, List.of(MemoryRange.host(closed))))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is closed");
        assertThatThrownBy(() -> agent.register(MemoryType.DRAM, List.of()))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(
                        () ->
                                agent.register(
                                        MemoryType.FILE, List.of(MemoryRange.host(region.memory))))
                .isInstanceOf(IllegalArgumentException.class);
        for (MemorySegment bad :
                List.of(
                        MemorySegment.ofArray(new byte[8]),
                        MemorySegment.NULL,
                        MemorySegment.NULL.reinterpret(8),
                        region.memory.asSlice(0, 0))) {
            assertThatThrownBy(() -> MemoryRange.host(bad))
                    .isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> new MemoryRange(region.memory, -1))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aLoadedPeerIsNotLoadedAgain() {
        byte[] metadata = other.localMetadata();
        assertThatThrownBy(() -> agent.load(metadata))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("remote agent neighbour#")
                .hasMessageContaining("is loaded; close it first");
        assertThatThrownBy(() -> agent.load(agent.localMetadata()))
                .isInstanceOf(MetadataException.class)
                .hasMessageContaining("it is this agent's own");
        assertThat(agent.remote("neighbour")).contains(remote);
        assertThat(agent.remote("nobody")).isEmpty();
        assertThatCode(() -> from.close()).doesNotThrowAnyException();
        from = remote.prepare(otherRegion.blocks(BLOCK_BYTES, BLOCKS));
    }

    @Test
    void metadataOfAnotherPeerIsRefused() {
        assertThatThrownBy(() -> remote.loadSections(agent.localMetadata()))
                .isInstanceOf(MetadataException.class)
                .hasMessageContaining("it is that of agent misuser");
        try (NixlAgent third = NixlAgent.create(NixlAgentConfig.builder("third").build())) {
            assertThatThrownBy(() -> third.load(other.localMetadata()))
                    .isInstanceOf(MetadataException.class)
                    .hasMessageContaining("no common backend: peer has [UCX], this agent []");
            assertThatThrownBy(third::localMetadata).isInstanceOf(NixlStatusException.class);
        }
        NixlAgentConfig strict = NixlAgentConfig.builder("strict").maxMetadataBytes(100).build();
        try (NixlAgent fourth = NixlAgent.create(strict)) {
            assertThatThrownBy(() -> fourth.load(other.localMetadata()))
                    .isInstanceOf(MetadataException.class)
                    .hasMessageContaining("bytes are more than 100");
        }
    }

    @Test
    void unknownPluginsAndSecondBackendsAreRefused() {
        assertThatThrownBy(() -> agent.createBackend("NONE", Map.of()))
                .isInstanceOf(NixlStatusException.class)
                .hasMessageContaining("plugin=NONE");
        assertThatThrownBy(() -> agent.createBackend("UCX", Map.of()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("has UCX already");
        assertThat(agent.availablePlugins()).contains("UCX");
        assertThat(agent.pluginOptions("UCX").memoryTypes()).contains(MemoryType.DRAM);
        assertThat(agent.pluginOptions("UCX").parameters()).containsKey("num_workers");
        assertThatThrownBy(() -> agent.pluginOptions("NONE"))
                .isInstanceOf(NixlStatusException.class);
    }

    @Test
    void longNotificationsAreRefused() {
        byte[] tooLong = new byte[agent.config().maxNotificationBytes() + 1];
        int[] one = {0};
        assertThatThrownBy(() -> remote.notify(tooLong))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(
                        () ->
                                agent.createTransfer(
                                        TransferOperation.READ, local, one, from, one, tooLong))
                .isInstanceOf(IllegalArgumentException.class);
    }

    private static void assertRefused(int[] localIndices, int[] remoteIndices, String why) {
        assertThatThrownBy(
                        () ->
                                agent.createTransfer(
                                        TransferOperation.READ,
                                        local,
                                        localIndices,
                                        from,
                                        remoteIndices))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(why);
    }

    private static BlockList one(long address, long lengthBytes, long deviceId) {
        return BlockList.builder(MemoryType.DRAM).add(address, lengthBytes, deviceId).build();
    }
}
