package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import dev.dormouse.testkit.Seeded;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Bytes and messages between two processes, through the real library. */
class TransferTest {
    private static final long PEER_SEED = 11;
    private static final long LOCAL_SEED = 22;

    private static PeerProcess peer;
    private static NixlAgent agent;
    private static Region region;
    private RemoteAgent remote;

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        peer = PeerProcess.start("owner");
        agent = NixlAgent.create(NixlAgentConfig.builder("reader").telemetry(true).build());
        agent.createBackend("UCX", Map.of());
        region = new Region(agent, PeerMain.REGION_BYTES);
        peer.load(agent);
    }

    @AfterAll
    static void stop() {
        if (peer != null) {
            region.close();
            agent.close();
            peer.close();
            assertThat(peer.exitValue()).isZero();
        }
    }

    @BeforeEach
    void load() {
        peer.ask("fill " + PEER_SEED);
        Pattern.fill(region.memory, LOCAL_SEED);
        remote = agent.load(peer.askBytes("metadata"));
    }

    @AfterEach
    void drop() {
        remote.close();
    }

    @Test
    void readsPutTheNamedBlocksInPlaceAndNothingElse() {
        Seeded.forAll(
                12,
                random -> {
                    Pairs pairs = Pairs.random(random);
                    Pattern.fill(region.memory, LOCAL_SEED);
                    try (LocalList local = agent.prepare(pairs.blocks(region));
                            RemoteList from = remote.prepare(pairs.blocks(peer))) {
                        Transfer read =
                                agent.createTransfer(
                                        TransferOperation.READ,
                                        local,
                                        pairs.local,
                                        from,
                                        pairs.remote);
                        assertThat(read.totalBytes()).isEqualTo(pairs.length * pairs.local.length);
                        assertThat(Transfers.run(read)).isInstanceOf(TransferState.Done.class);
                    }
                    pairs.checkRead(region.memory);
                });
    }

    @Test
    void writesPutTheNamedBlocksInPlace() {
        try (LocalList local = agent.prepare(region.blocks(4096, 256));
                RemoteList to = remote.prepare(peer.blocks(4096, 256, 0))) {
            int[] all = Transfers.range(256);
            Transfer write = agent.createTransfer(TransferOperation.WRITE, local, all, to, all);
            assertThat(Transfers.run(write)).isInstanceOf(TransferState.Done.class);
        }
        assertThat(peer.askNumber("mismatch " + LOCAL_SEED)).isEqualTo(-1);
    }

    @Test
    void directTransfersTakeBlocksOfAnyLength() {
        long address = peer.askNumber("address");
        BlockList from =
                BlockList.builder(MemoryType.DRAM)
                        .add(address + 100, 1, 0)
                        .add(address + 5000, 70_000, 0)
                        .add(address, 64, 0)
                        .build();
        BlockList to =
                BlockList.builder(MemoryType.DRAM)
                        .add(region.memory.address() + 7, 1, 0)
                        .add(region.memory.address() + 4096, 70_000, 0)
                        .add(region.memory.address() + 100_000, 64, 0)
                        .build();

        Transfer read = agent.createTransfer(TransferOperation.READ, to, remote, from);

        assertThat(read.totalBytes()).isEqualTo(70_065);
        assertThat(Transfers.run(read)).isInstanceOf(TransferState.Done.class);
        assertThat(Pattern.mismatch(region.memory.asSlice(7, 1), PEER_SEED, 100)).isEqualTo(-1);
        assertThat(Pattern.mismatch(region.memory.asSlice(4096, 70_000), PEER_SEED, 5000))
                .isEqualTo(-1);
        assertThat(Pattern.mismatch(region.memory.asSlice(100_000, 64), PEER_SEED, 0))
                .isEqualTo(-1);
        assertThat(Pattern.mismatch(region.memory.asSlice(0, 7), LOCAL_SEED, 0)).isEqualTo(-1);
    }

    @Test
    void aRepostedReadSeesWhatThePeerWroteSince() {
        try (LocalList local = agent.prepare(region.blocks(1 << 16, 16));
                RemoteList from = remote.prepare(peer.blocks(1 << 16, 16, 0))) {
            int[] all = Transfers.range(16);
            Transfer read = agent.createTransfer(TransferOperation.READ, local, all, from, all);
            read.post();
            Transfers.await(read);
            assertThat(Pattern.mismatch(region.memory, PEER_SEED, 0)).isEqualTo(-1);

            peer.ask("fill 33");
            read.post();
            assertThat(Transfers.await(read)).isInstanceOf(TransferState.Done.class);

            assertThat(Pattern.mismatch(region.memory, 33, 0)).isEqualTo(-1);
            assertThat(read.telemetry())
                    .hasValueSatisfying(t -> assertThat(t.totalBytes()).isEqualTo(1 << 20));
            assertThat(read.release()).isEqualTo(ReleaseResult.RELEASED);
            assertThat(read.release()).isEqualTo(ReleaseResult.RELEASED);
        }
    }

    @Test
    void attachedNotificationsArriveOncePerPosting() {
        try (LocalList local = agent.prepare(region.blocks(4096, 4));
                RemoteList from = remote.prepare(peer.blocks(4096, 4, 0))) {
            int[] one = {2};
            Transfer read =
                    agent.createTransfer(
                            TransferOperation.READ, local, one, from, one, "first".getBytes(UTF_8));
            read.post();
            Transfers.await(read);
            assertThat(drainPeer(1)).isEqualTo("[reader:first]");

            read.post();
            Transfers.await(read);
            assertThat(drainPeer(1)).isEqualTo("[reader:first]");

            read.post("second".getBytes(UTF_8));
            Transfers.await(read);
            assertThat(drainPeer(1)).isEqualTo("[reader:second]");
            read.close();
        }
        assertThat(peer.ask("drain")).isEqualTo("[]");
    }

    @Test
    void notificationsTravelAloneInBothDirectionsInOrder() {
        remote.notify("a".getBytes(UTF_8));
        remote.notify(new byte[0]);
        remote.notify("c".getBytes(UTF_8));
        assertThat(drainPeer(3)).isEqualTo("[reader:a,reader:,reader:c]");

        peer.ask("notify reader x");
        peer.ask("notify reader y");
        List<Notification> got = new ArrayList<>();
        Await.until(
                "two notifications",
                () -> {
                    got.addAll(agent.drainNotifications());
                    return got.size() >= 2;
                });
        assertThat(got)
                .containsExactly(
                        new Notification("owner", "x".getBytes(UTF_8)),
                        new Notification("owner", "y".getBytes(UTF_8)));
    }

    @Test
    void aPeerThatReplacedItsPagesIsReadAfterDropAndLoad() {
        RemoteAgent before = remote;
        try (LocalList local = agent.prepare(region.blocks(1 << 16, 16))) {
            readAll(local, before, 0);
            before.close();
            peer.ask("replace 0");
            peer.ask("fill 44");

            remote = agent.load(peer.askBytes("metadata"));

            readAll(local, remote, 0);
        }
        assertThat(Pattern.mismatch(region.memory, 44, 0)).isEqualTo(-1);
    }

    @Test
    void aKeptPeerIsReadUnderAFreshDeviceId() {
        try (LocalList local = agent.prepare(region.blocks(1 << 16, 16))) {
            readAll(local, remote, 0);
            for (int epoch = 1; epoch <= 3; epoch++) {
                peer.ask("replace " + epoch);
                peer.ask("fill " + (50 + epoch));
                assertThat(remote.holds(peer.blocks(4096, 1, epoch))).isFalse();

                remote.loadSections(peer.askBytes(epoch == 2 ? "metadata" : "partial"));

                assertThat(remote.holds(peer.blocks(4096, 1, epoch))).isTrue();
                readAll(local, remote, epoch);
                assertThat(Pattern.mismatch(region.memory, 50 + epoch, 0)).isEqualTo(-1);
            }
        } finally {
            peer.ask("replace 0");
        }
    }

    @Test
    void theReadersOwnPagesMayBeReplacedBetweenReads() {
        for (int cycle = 0; cycle < 3; cycle++) {
            try (LocalList local = agent.prepare(region.blocks(1 << 16, 16))) {
                readAll(local, remote, 0);
            }
            assertThat(Pattern.mismatch(region.memory, PEER_SEED, 0)).isEqualTo(-1);
            region.replacePages(0);
            assertThat(region.memory.get(JAVA_BYTE, 5)).isZero();
        }
    }

    @Test
    void cyclesOpenNoDescriptors() {
        remote.connect();
        long ownBefore = 0;
        long peerBefore = 0;
        for (int cycle = 0; cycle < 60; cycle++) {
            if (cycle == 10) {
                ownBefore = Descriptors.open();
                peerBefore = peer.askNumber("descriptors");
            }
            peer.ask("replace " + (1000 + cycle));
            remote.loadSections(peer.askBytes("partial"));
            region.replacePages(0);
            try (LocalList local = agent.prepare(region.blocks(1 << 16, 16))) {
                readAll(local, remote, 1000 + cycle);
            }
        }
        assertThat(Descriptors.open()).isLessThanOrEqualTo(ownBefore);
        assertThat(peer.askNumber("descriptors")).isLessThanOrEqualTo(peerBefore);
        peer.ask("replace 0");
    }

    @Test
    void aChangedKeyOfALoadedSectionIsRefusedBeforeNixlSeesIt() {
        byte[] metadata = peer.askBytes("metadata");
        byte[] otherKey = metadata.clone();
        otherKey[otherKey.length - 2] ^= 1;

        assertThatThrownBy(() -> remote.loadSections(otherKey))
                .isInstanceOf(MetadataException.class)
                .hasMessageContaining("is loaded with another key");

        remote.loadSections(metadata);
        try (LocalList local = agent.prepare(region.blocks(1 << 16, 16))) {
            readAll(local, remote, 0);
        }
        assertThat(Pattern.mismatch(region.memory, PEER_SEED, 0)).isEqualTo(-1);
    }

    private void readAll(LocalList local, RemoteAgent owner, long deviceId) {
        int[] all = Transfers.range(16);
        try (RemoteList from = owner.prepare(peer.blocks(1 << 16, 16, deviceId))) {
            Transfer read = agent.createTransfer(TransferOperation.READ, local, all, from, all);
            assertThat(Transfers.run(read)).isInstanceOf(TransferState.Done.class);
        }
    }

    /** Drains until {@code count} messages came, and returns them as the peer prints them. */
    private static String drainPeer(int count) {
        List<String> got = new ArrayList<>();
        Await.until(
                count + " notifications at the peer",
                () -> {
                    String line = peer.ask("drain");
                    if (line.length() > 2) {
                        got.addAll(List.of(line.substring(1, line.length() - 1).split(",")));
                    }
                    return got.size() >= count;
                });
        return "[" + String.join(",", got) + "]";
    }

    /** Equal blocks with gaps, and which goes where. */
    private static final class Pairs {
        private final long length;
        private final long stride;
        private final int count;
        private final int[] local;
        private final int[] remote;

        Pairs(long length, long stride, int count, int[] local, int[] remote) {
            this.length = length;
            this.stride = stride;
            this.count = count;
            this.local = local;
            this.remote = remote;
        }

        static Pairs random(SplittableRandom random) {
            int length = 1 + random.nextInt(1 << 13);
            int stride = length + (random.nextBoolean() ? 0 : random.nextInt(100));
            int count = Math.min(300, PeerMain.REGION_BYTES / stride);
            int pairs = 1 + random.nextInt(count);
            return new Pairs(
                    length,
                    stride,
                    count,
                    distinct(random, count, pairs),
                    distinct(random, count, pairs));
        }

        BlockList blocks(Region region) {
            return blocks(region.memory.address());
        }

        BlockList blocks(PeerProcess peer) {
            return blocks(peer.askNumber("address"));
        }

        void checkRead(MemorySegment memory) {
            int[] source = new int[count];
            Arrays.fill(source, -1);
            for (int i = 0; i < local.length; i++) {
                source[local[i]] = remote[i];
            }
            for (int block = 0; block < count; block++) {
                boolean read = source[block] >= 0;
                long seed = read ? PEER_SEED : LOCAL_SEED;
                long from = (read ? source[block] : block) * stride;
                MemorySegment bytes = memory.asSlice(block * stride, length);
                assertThat(Pattern.mismatch(bytes, seed, from)).as("block %d", block).isEqualTo(-1);
                MemorySegment gap = memory.asSlice(block * stride + length, stride - length);
                assertThat(Pattern.mismatch(gap, LOCAL_SEED, block * stride + length))
                        .as("gap after block %d", block)
                        .isEqualTo(-1);
            }
        }

        private BlockList blocks(long address) {
            return BlockList.builder(MemoryType.DRAM)
                    .addStrided(address, stride, length, count, 0)
                    .build();
        }

        private static int[] distinct(SplittableRandom random, int bound, int count) {
            int[] all = Transfers.range(bound);
            for (int i = 0; i < count; i++) {
                int j = i + random.nextInt(bound - i);
                int swap = all[i];
                all[i] = all[j];
                all[j] = swap;
            }
            return Arrays.copyOf(all, count);
        }
    }
}
