package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import dev.dormouse.transport.BlockList;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Blocks across registered ranges, over the real library. */
final class SplitBlocksTest {
    private static final int BLOCK = 1_000;
    private static final int COUNT = 12;
    private static final int BYTES = BLOCK * COUNT;
    private static final int[] ALL = IntStream.range(0, COUNT).toArray();
    private static final int[] REVERSED =
            IntStream.range(0, COUNT).map(i -> COUNT - 1 - i).toArray();

    private final Arena arena = Arena.ofShared();
    private final MemorySegment source = arena.allocate(BYTES, 4_096);
    private final MemorySegment target = arena.allocate(BYTES, 4_096);
    private NixlTransport owner;
    private NixlTransport reader;

    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    @BeforeEach
    void open() {
        Map<String, String> parameters = UcxSleepDefaults.applied(Map.of(), System.getenv());
        owner = NixlTransport.open("UCX", parameters);
        reader = NixlTransport.open("UCX", parameters);
        SplittableRandom random = new SplittableRandom(7);
        for (int i = 0; i < BYTES; i++) {
            source.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
        }
    }

    @AfterEach
    void close() {
        reader.close();
        owner.close();
        arena.close();
    }

    @Test
    void blocksGoAsAWholeWhereverTheRangesOfEitherSideEnd() {
        owner.register(ranges(source, 2_500, 2_600, 2_700, 6_000, 9_999));
        reader.register(ranges(target, 300, 5_001, 8_000));
        RemotePeer peer = reader.load(owner.metadata());
        try (BlockList local = reader.prepareLocal(rows(target));
                BlockList remote = reader.prepareRemote(peer, rows(source))) {
            assertThat(local.size()).isEqualTo(COUNT);
            assertThat(remote.size()).isEqualTo(COUNT);
            finish(reader.read(local, ALL, remote, REVERSED, new byte[] {'n'}));
        }
        for (int block = 0; block < COUNT; block++) {
            assertThat(block(target, block)).isEqualTo(block(source, COUNT - 1 - block));
        }
        List<PeerMessage> got = new ArrayList<>();
        Await.until("the notification", () -> got.addAll(owner.messages()));
        assertThat(got).singleElement().satisfies(m -> assertThat(m.bytes()).containsExactly('n'));
        peer.close();
    }

    @Test
    void writesAreSplitToo() {
        owner.register(ranges(source, 1_500));
        reader.register(ranges(target, 10_100));
        RemotePeer peer = reader.load(owner.metadata());
        byte[] before = block(target, 10);
        try (BlockList local = reader.prepareLocal(rows(target));
                BlockList remote = reader.prepareRemote(peer, rows(source))) {
            finish(
                    reader.write(
                            local, new int[] {10, 3}, remote, new int[] {1, 4}, new byte[] {'n'}));
        }
        assertThat(block(source, 1)).isEqualTo(before);
        peer.close();
    }

    @Test
    void pairsThatDoNotMatchAreRefusedWhenBlocksAreSplit() {
        owner.register(ranges(source, 1_500));
        reader.register(ranges(target));
        RemotePeer peer = reader.load(owner.metadata());
        try (BlockList local = reader.prepareLocal(rows(target));
                BlockList remote = reader.prepareRemote(peer, rows(source));
                BlockList short1 =
                        reader.prepareLocal(
                                List.of(
                                        new BlockRow(
                                                target.address(),
                                                BLOCK - 1,
                                                BLOCK,
                                                COUNT,
                                                MemoryKind.DRAM,
                                                0)))) {
            byte[] none = {'n'};
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> reader.read(local, ALL, remote, new int[] {1}, none))
                    .withMessageContaining("must be equal");
            assertThatIllegalArgumentException()
                    .isThrownBy(
                            () ->
                                    reader.read(
                                            local,
                                            new int[] {0, COUNT},
                                            remote,
                                            new int[] {1, 2},
                                            none))
                    .withMessageContaining("index 12 is not within 0 and 11");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> reader.read(short1, ALL, remote, ALL, none))
                    .withMessageContaining("lengths at position 0 differ");
        }
        peer.close();
    }

    @Test
    void aListThatIsClosedIsOfNoUseForSplitBlocksEither() {
        owner.register(ranges(source, 1_500));
        reader.register(ranges(target));
        RemotePeer peer = reader.load(owner.metadata());
        int[] split = {1};
        BlockList local = reader.prepareLocal(rows(target));
        BlockList remote = reader.prepareRemote(peer, rows(source));
        remote.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> reader.read(local, split, remote, split, new byte[0]));
        BlockList again = reader.prepareRemote(peer, rows(source));
        local.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> reader.read(local, split, again, split, new byte[0]));
        again.close();
        peer.close();
    }

    private static void finish(Transfer transfer) {
        Await.until(
                "the end of the transfer",
                () -> !(transfer.poll() instanceof TransferState.InProgress));
        assertThat(transfer.poll()).isInstanceOf(TransferState.Done.class);
        assertThat(transfer.release()).isTrue();
    }

    /** All of a segment, in ranges that end where it is said. */
    private static List<MemoryRange> ranges(MemorySegment segment, long... ends) {
        List<MemoryRange> ranges = new ArrayList<>();
        long start = 0;
        for (long end : Arrays.copyOf(ends, ends.length + 1)) {
            long to = end == 0 ? BYTES : end;
            ranges.add(new MemoryRange(segment.address() + start, to - start, MemoryKind.DRAM, 0));
            start = to;
        }
        return ranges;
    }

    /** In two rows, of which the second is the end of the memory. */
    private static List<BlockRow> rows(MemorySegment segment) {
        return List.of(
                new BlockRow(segment.address(), BLOCK, BLOCK, 5, MemoryKind.DRAM, 0),
                new BlockRow(segment.address() + 5 * BLOCK, BLOCK, BLOCK, 7, MemoryKind.DRAM, 0));
    }

    private static byte[] block(MemorySegment segment, int block) {
        return segment.asSlice((long) block * BLOCK, BLOCK).toArray(ValueLayout.JAVA_BYTE);
    }
}
