package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** The example of {@code README.md}, which is the part between the two marks. */
final class ReadmeExample {
    private ReadmeExample() {}

    /** Returns the byte that was read. */
    // readme: start
    static byte readFromAPeer() throws InterruptedException {
        try (Arena arena = Arena.ofShared();
                NixlAgent owner = NixlAgent.create(NixlAgentConfig.builder("owner").build());
                NixlAgent reader = NixlAgent.create(NixlAgentConfig.builder("reader").build())) {
            // The owner, usually in another process: register memory, hand out the metadata.
            owner.createBackend("UCX", Map.of());
            MemorySegment source = arena.allocate(1 << 20, 4096).fill((byte) 42);
            owner.register(MemoryType.DRAM, List.of(MemoryRange.host(source)));
            byte[] metadata = owner.localMetadata();

            // The reader: register the target, load the owner, prepare 256 blocks on each side.
            reader.createBackend("UCX", Map.of());
            MemorySegment target = arena.allocate(1 << 20, 4096);
            reader.register(MemoryType.DRAM, List.of(MemoryRange.host(target)));
            RemoteAgent remote = reader.load(metadata);
            LocalList to = reader.prepare(blocks(target.address()));
            RemoteList from = remote.prepare(blocks(source.address()));

            // Read the owner's blocks 7 and 9 into blocks 0 and 1, and tell the owner so.
            byte[] done = "blocks 7 and 9 are free".getBytes(StandardCharsets.UTF_8);
            Transfer transfer =
                    reader.createTransfer(
                            TransferOperation.READ,
                            to,
                            new int[] {0, 1},
                            from,
                            new int[] {7, 9},
                            done);
            TransferState state = transfer.post();
            while (state instanceof TransferState.InProgress) {
                Thread.sleep(1);
                state = transfer.state();
            }
            if (state instanceof TransferState.Failed failed) {
                throw new IllegalStateException("read failed: " + failed.status());
            }
            return target.get(JAVA_BYTE, 4096);
        } // closes transfers, lists, peers and registrations in this order, then the agents
    }

    private static BlockList blocks(long address) {
        return BlockList.builder(MemoryType.DRAM).addStrided(address, 4096, 4096, 256, 0).build();
    }
    // readme: end
}
