package dev.dormouse.nixl;

import dev.dormouse.benchmarks.Timed;
import dev.dormouse.foreign.Libc;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Reads of one block, and what lists and requests of many cost, between two agents of a process.
 */
@SuppressWarnings("NullAway.Init") // JMH calls the set-up
public class ReadRequestBenchmark extends Timed {
    private static final int READ_WRITE = Libc.PROT_READ | Libc.PROT_WRITE;
    private static final int ANONYMOUS = Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS;

    /** Of a block. */
    @Param("32768")
    public int blockBytes;

    /** That the lists have. */
    @Param("8192")
    public int blocks;

    private MemorySegment source;
    private MemorySegment target;
    private NixlAgent owner;
    private NixlAgent reader;
    private RemoteAgent remote;
    private LocalList to;
    private RemoteList from;
    private Transfer reposted;
    private int[] shuffledTo;
    private int[] shuffledFrom;

    /** Makes two agents with memory, and lets one load the other. */
    @Setup
    public void setUp() {
        long bytes = (long) blocks * blockBytes;
        source = Libc.map(bytes, READ_WRITE, ANONYMOUS, -1, 0);
        target = Libc.map(bytes, READ_WRITE, ANONYMOUS, -1, 0);
        owner = agent("owner", source);
        reader = agent("reader", target);
        remote = reader.load(owner.localMetadata());
        to = reader.prepare(list(target));
        from = remote.prepare(list(source));
        reposted = one();
        SplittableRandom random = new SplittableRandom(1);
        shuffledTo = shuffled(random);
        shuffledFrom = shuffled(random);
        var _ = run(reposted); // connects
    }

    private static NixlAgent agent(String name, MemorySegment memory) {
        NixlAgent agent = NixlAgent.create(NixlAgentConfig.builder(name).build());
        var _ = agent.createBackend("UCX", Map.of());
        var _ = agent.register(MemoryType.DRAM, List.of(MemoryRange.host(memory)));
        return agent;
    }

    private BlockList list(MemorySegment memory) {
        return BlockList.builder(MemoryType.DRAM)
                .addStrided(memory.address(), blockBytes, blockBytes, blocks, 0)
                .build();
    }

    private int[] shuffled(SplittableRandom random) {
        int[] indices = new int[blocks];
        for (int i = 0; i < blocks; i++) {
            int other = random.nextInt(i + 1);
            indices[i] = indices[other];
            indices[other] = i;
        }
        return indices;
    }

    private Transfer one() {
        int[] last = {blocks - 1};
        return reader.createTransfer(TransferOperation.READ, to, last, from, last);
    }

    /** Ends the agents, then the memory. */
    @TearDown
    public void tearDown() {
        reader.close();
        owner.close();
        Libc.unmap(target);
        Libc.unmap(source);
    }

    /** One block by a request of its own. */
    @Benchmark
    public TransferState oneBlockAnew() {
        Transfer transfer = one();
        TransferState end = run(transfer);
        transfer.close();
        return end;
    }

    /** One block by a request that was made before. */
    @Benchmark
    public TransferState oneBlockReposted() {
        return run(reposted);
    }

    /** Makes a request of all blocks in random order, and drops it. */
    @Benchmark
    public void requestOfMany() {
        reader.createTransfer(TransferOperation.READ, to, shuffledTo, from, shuffledFrom).close();
    }

    /** Prepares all own blocks. */
    @Benchmark
    public void prepareLocal() {
        reader.prepare(list(target)).close();
    }

    /** Prepares all blocks of the other agent. */
    @Benchmark
    public void prepareRemote() {
        remote.prepare(list(source)).close();
    }

    private static TransferState run(Transfer transfer) {
        TransferState state = transfer.post();
        while (!state.isTerminal()) {
            state = transfer.state();
        }
        if (state instanceof TransferState.Failed failed) {
            throw new IllegalStateException("read failed: " + failed.status());
        }
        return state;
    }
}
