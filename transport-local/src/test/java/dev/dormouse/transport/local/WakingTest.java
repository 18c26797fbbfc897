package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelFabric;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who need not poll to hear that a transfer has ended. */
class WakingTest {
    private static final int BYTES = 4 << 20;

    private final MemfdNode owner = new MemfdNode();
    private final MemfdNode reader = new MemfdNode();
    private final long ownerBase = owner.allocate(BYTES);
    private final long readerBase = reader.allocate(BYTES);
    private final CountDownLatch ended = new CountDownLatch(1);

    @AfterEach
    void close() {
        reader.close();
        owner.close();
    }

    private Transfer read(KvTransport transport, int[] indices) {
        var _ = register(owner.transport(), ownerBase);
        var _ = register(reader.transport(), readerBase);
        RemotePeer peer = transport.load(owner.transport().metadata());
        BlockList local = transport.prepareLocal(all(readerBase));
        BlockList remote = transport.prepareRemote(peer, all(ownerBase));
        return transport.read(local, indices, remote, indices, new byte[] {1});
    }

    private static AutoCloseable register(KvTransport transport, long address) {
        return transport.register(List.of(new MemoryRange(address, BYTES, MemoryKind.DRAM, 0)));
    }

    private static List<BlockRow> all(long address) {
        return List.of(new BlockRow(address, BYTES, BYTES, 1, MemoryKind.DRAM, 0));
    }

    @Test
    void whoIsWokenFindsTheTransferEnded() throws Exception {
        reader.transport().wakeWith(ended::countDown);
        Transfer transfer = read(reader.transport(), new int[1]);
        ended.await();
        assertThat(transfer.poll()).isInstanceOf(TransferState.Done.class);
    }

    @Test
    void aTransferThatFailsWakes() throws Exception {
        reader.transport().wakeWith(ended::countDown);
        Transfer transfer = read(reader.transport(), new int[4096]); // seconds, if nothing ended it
        owner.close();
        ended.await();
        assertThat(transfer.poll()).isInstanceOf(TransferState.Failed.class);
    }

    @Test
    void anAgentWithTwoWaysIsWokenByTheNearOne() throws Exception {
        LocalTransport near = reader.transport();
        KvTransport far =
                new ModelFabric(System::nanoTime).open(near.agentName(), new ModelMemory(64));
        AutoTransport both = new AutoTransport(near, far);
        both.wakeWith(ended::countDown);
        Transfer transfer = read(near, new int[1]);
        ended.await();
        assertThat(transfer.poll()).isInstanceOf(TransferState.Done.class);
        far.close();
    }
}
