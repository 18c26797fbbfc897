package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.foreign.Libc;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Who outlives whom, also when a peer is frozen, dead, or the agent goes first. */
class OwnershipTest {
    private static final int[] ALL = Transfers.range(16);

    private PeerProcess peer;
    private NixlAgent agent;
    private Region region;

    @BeforeEach
    void start() {
        Natives.nixlDirectory();
        peer = PeerProcess.start("owner");
        agent = NixlAgent.create(NixlAgentConfig.builder("reader").build());
        agent.createBackend("UCX", Map.of());
        region = new Region(agent, PeerMain.REGION_BYTES);
    }

    @AfterEach
    void stop() {
        if (peer != null) {
            agent.close();
            peer.close();
        }
    }

    @Test
    void closingInTheWrongOrderNamesWhatIsInTheWay() {
        RemoteAgent remote = agent.load(peer.askBytes("metadata"));
        LocalList local = agent.prepare(region.blocks(1 << 16, 16));
        RemoteList from = remote.prepare(peer.blocks(1 << 16, 16, 0));
        Transfer prepared = agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL);
        Transfer direct =
                agent.createTransfer(
                        TransferOperation.READ,
                        region.blocks(1 << 16, 16),
                        remote,
                        peer.blocks(1 << 16, 16, 0));

        assertRefused(region.registration(), local, direct);
        assertRefused(remote, from, direct);
        assertRefused(local, prepared);
        assertRefused(from, prepared);

        assertThat(Transfers.run(prepared)).isInstanceOf(TransferState.Done.class);
        assertRefused(region.registration(), local, direct);
        assertThat(Transfers.run(direct)).isInstanceOf(TransferState.Done.class);
        local.close();
        from.close();
        remote.close();
        region.close();
    }

    @Test
    void theAgentClosesAllThatIsLeftAndTheRestIsInert() {
        RemoteAgent remote = agent.load(peer.askBytes("metadata"));
        LocalList local = agent.prepare(region.blocks(1 << 16, 16));
        RemoteList from = remote.prepare(peer.blocks(1 << 16, 16, 0));
        Transfer posted = agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL);
        Transfer unposted = agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL);
        posted.post();

        agent.close();
        agent.close();

        for (NixlObject object :
                List.of(posted, unposted, local, from, remote, region.registration())) {
            assertThat(object.isOpen()).as("%s", object).isFalse();
            object.close();
        }
        assertThat(posted.release()).isEqualTo(ReleaseResult.RELEASED);
        assertThatThrownBy(posted::state)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("poll refused: agent reader is closed");
        assertThatThrownBy(agent::drainNotifications).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> remote.notify(new byte[1]))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(agent::localMetadata).isInstanceOf(IllegalStateException.class);
        Libc.unmap(region.memory);
    }

    @Test
    void anAgentMayEndUnderItsWrites() {
        Map<String, String> tcp = Map.of("engine_config", "TLS=tcp");
        int[] many = IntStream.range(0, 4_096).map(i -> i * 7 % 16).toArray();
        try (PeerProcess target = PeerProcess.start("target", Map.of("UCX_TLS", "tcp"))) {
            for (int round = 0; round < 20; round++) {
                NixlAgent writer = NixlAgent.create(NixlAgentConfig.builder("w" + round).build());
                writer.createBackend("UCX", tcp);
                Region source = new Region(writer, 1 << 20);
                LocalList from = writer.prepare(source.blocks(1 << 16, 16));
                RemoteAgent remote = writer.load(target.askBytes("metadata"));
                RemoteList to = remote.prepare(target.blocks(1 << 16, 16, 0));
                Transfers.run(writer.createTransfer(TransferOperation.WRITE, from, ALL, to, ALL));
                Transfer write =
                        writer.createTransfer(TransferOperation.WRITE, from, many, to, many);
                write.post(); // connected now, and so on its way
                writer.close();
                Libc.unmap(source.memory);
            }
            assertThat(target.ask("fill 1")).isEqualTo("ok");
        }
    }

    @Test
    void aTransferInProgressIsReleasedOnlyAfterItsEnd() {
        byte[] metadata = peer.askBytes("metadata");
        BlockList blocks = peer.blocks(1 << 16, 16, 0);
        peer.ask("fill 9");
        LocalList local = agent.prepare(region.blocks(1 << 16, 16));
        peer.freeze();
        RemoteAgent remote = agent.load(metadata); // no connection before the thaw
        RemoteList from = remote.prepare(blocks);
        Transfer read = agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL);
        try {
            assertThat(read.post()).isInstanceOf(TransferState.InProgress.class);

            assertThat(read.release()).isEqualTo(ReleaseResult.STILL_ACTIVE);
            assertThatThrownBy(read::post)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("still in progress");
            assertThatThrownBy(read::telemetry).isInstanceOf(IllegalStateException.class);

            read.close();
            read.close();
            assertThat(agent.retryReleases()).isEqualTo(1);
            assertThat(read.isOpen()).isTrue();
            assertThatThrownBy(read::state)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("is closed");
            assertRefused(local, read);
        } finally {
            peer.thaw();
        }
        Await.until("release", () -> agent.retryReleases() == 0);
        assertThat(read.isOpen()).isFalse();
        assertThat(Pattern.mismatch(region.memory, 9, 0)).isEqualTo(-1);
        local.close();
        from.close();
        remote.close();
        region.close();
    }

    @Test
    void theAgentClosesOverATransferThatNeverEnds() {
        byte[] metadata = peer.askBytes("metadata");
        BlockList blocks = peer.blocks(1 << 16, 16, 0);
        LocalList local = agent.prepare(region.blocks(1 << 16, 16));
        peer.freeze();
        try {
            RemoteList from = agent.load(metadata).prepare(blocks);
            Transfer read = agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL);
            assertThat(read.post()).isInstanceOf(TransferState.InProgress.class);

            agent.close();

            assertThat(read.isOpen()).isFalse();
            Libc.unmap(region.memory);
        } finally {
            peer.thaw();
        }
    }

    @Test
    void aDeadPeerFailsTransfersAndCanBeReplaced() {
        RemoteAgent remote = agent.load(peer.askBytes("metadata"));
        LocalList local = agent.prepare(region.blocks(1 << 16, 16));
        RemoteList from = remote.prepare(peer.blocks(1 << 16, 16, 0));
        BlockList directBlocks = peer.blocks(1 << 16, 16, 0);
        Transfer read = agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL);
        read.post();
        assertThat(Transfers.await(read)).isInstanceOf(TransferState.Done.class);

        peer.kill();
        Await.until("a failed read", () -> postToEnd(read) instanceof TransferState.Failed);

        assertThat(remote.isLost()).isTrue();
        assertThat(postToEnd(read)).isInstanceOf(TransferState.Failed.class);
        assertThatThrownBy(
                        () -> agent.createTransfer(TransferOperation.READ, local, ALL, from, ALL))
                .isInstanceOf(PeerLostException.class)
                .hasMessageContaining("peer=owner");
        assertThatThrownBy(
                        () ->
                                agent.createTransfer(
                                        TransferOperation.READ,
                                        region.blocks(1 << 16, 16),
                                        remote,
                                        directBlocks))
                .isInstanceOf(PeerLostException.class);
        assertThatThrownBy(() -> remote.notify(new byte[1])).isInstanceOf(PeerLostException.class);

        read.close();
        from.close();
        remote.close();
        peer.close();
        peer = PeerProcess.start("owner");
        peer.ask("fill 3");
        RemoteAgent again = agent.load(peer.askBytes("metadata"));
        try (RemoteList fresh = again.prepare(peer.blocks(1 << 16, 16, 0))) {
            Transfer second = agent.createTransfer(TransferOperation.READ, local, ALL, fresh, ALL);
            assertThat(Transfers.run(second)).isInstanceOf(TransferState.Done.class);
        }
        assertThat(Pattern.mismatch(region.memory, 3, 0)).isEqualTo(-1);
    }

    private static TransferState postToEnd(Transfer transfer) {
        transfer.post();
        return Transfers.await(transfer);
    }

    private static void assertRefused(NixlObject parent, NixlObject... children) {
        assertThatThrownBy(parent::close)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(children.length + " live objects are built on it")
                .hasMessageContaining(children[0].toString())
                .hasMessageContaining(children[children.length - 1].toString());
        assertThat(parent.isOpen()).isTrue();
    }
}
