package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.TransportException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class HostCopyTest {
    private static final int BYTES = 5 << 20;

    /** Rows of blocks somewhere in a memory, and where each block is. */
    private record Blocks(BlockTable table, List<Long> addresses) {}

    private static Blocks blocks(SplittableRandom random, long base, int blockBytes, int rows) {
        List<BlockRow> all = new ArrayList<>();
        List<Long> addresses = new ArrayList<>();
        long rowBytes = BYTES / rows;
        for (int row = 0; row < rows; row++) {
            long stride = blockBytes + (long) random.nextInt(0, 3) * blockBytes;
            int count = random.nextInt(1, (int) (rowBytes / stride) + 1);
            long address = base + row * rowBytes;
            all.add(new BlockRow(address, blockBytes, stride, count, MemoryKind.DRAM, 0));
            for (int i = 0; i < count; i++) {
                addresses.add(address + i * stride);
            }
        }
        long[] starts = all.stream().mapToLong(BlockRow::address).toArray();
        return new Blocks(new BlockTable(all, starts), addresses);
    }

    @Test
    void exactlyTheNamedBlocksAreCopiedInPiecesThatAreBounded() {
        Seeded.forAll(
                30,
                random -> {
                    try (Arena arena = Arena.ofConfined()) {
                        MemorySegment here = arena.allocate(BYTES);
                        MemorySegment there = arena.allocate(BYTES);
                        fill(random, here);
                        fill(random, there);
                        int blockBytes = 1 << random.nextInt(8, 18);
                        Blocks ours = blocks(random, here.address(), blockBytes, 3);
                        Blocks theirs = blocks(random, there.address(), blockBytes, 2);
                        int count =
                                random.nextInt(
                                        1,
                                        Math.min(ours.table().size(), theirs.table().size()) + 1);
                        int[] from = consecutive(random, theirs.table().size(), count);
                        int[] to = consecutive(random, ours.table().size(), count);
                        boolean writes = random.nextBoolean();
                        byte[] expectedHere = here.toArray(ValueLayout.JAVA_BYTE);
                        byte[] expectedThere = there.toArray(ValueLayout.JAVA_BYTE);
                        int descriptors = 0;
                        for (int i = 0; i < count; i++) {
                            long our = ours.addresses().get(to[i]) - here.address();
                            long their = theirs.addresses().get(from[i]) - there.address();
                            System.arraycopy(
                                    writes ? expectedHere : expectedThere,
                                    (int) (writes ? our : their),
                                    writes ? expectedThere : expectedHere,
                                    (int) (writes ? their : our),
                                    blockBytes);
                            boolean continues =
                                    i > 0
                                            && ours.addresses().get(to[i - 1]) + blockBytes
                                                    == ours.addresses().get(to[i])
                                            && theirs.addresses().get(from[i - 1]) + blockBytes
                                                    == theirs.addresses().get(from[i]);
                            descriptors += continues ? 0 : 1;
                        }

                        HostCopy plan =
                                HostCopy.of(
                                        writes,
                                        new BlockPairs(ours.table(), to, theirs.table(), from));
                        List<HostCopy.Piece> pieces = new ArrayList<>();
                        for (var piece = plan.next(); piece != null; piece = plan.next()) {
                            pieces.add(piece);
                        }
                        int handedOut = pieces.size();
                        for (int i = handedOut; i > 0; i--) { // their order does not matter
                            pieces.remove(random.nextInt(i)).copy();
                        }

                        assertThat(plan.bytes()).isEqualTo((long) count * blockBytes);
                        assertThat(plan.descriptors()).isEqualTo(descriptors);
                        assertThat(handedOut)
                                .isEqualTo(Math.ceilDiv(plan.bytes(), HostCopy.PIECE_BYTES));
                        assertThat(here.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expectedHere);
                        assertThat(there.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expectedThere);
                    }
                });
    }

    private static void fill(SplittableRandom random, MemorySegment memory) {
        byte[] bytes = new byte[BYTES];
        random.nextBytes(bytes);
        memory.copyFrom(MemorySegment.ofArray(bytes));
    }

    /** Neighbours often follow each other. */
    private static int[] consecutive(SplittableRandom random, int size, int count) {
        int start = random.nextInt(size);
        int[] indices = new int[count];
        for (int i = 0; i < count; i++) {
            indices[i] = (start + i) % size;
        }
        return indices;
    }

    @Test
    void blocksOfUnequalLengthDoNotPair() {
        BlockTable small = table(100, 4);
        BlockTable large = table(101, 4);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(() -> new BlockPairs(small, new int[] {0}, large, new int[] {3}))
                .withMessageContaining("remote block 3 has 101");
    }

    @Test
    void moreBlocksThanCanBeCountedAreRefused() {
        BlockRow row = new BlockRow(1, 1, 1, Integer.MAX_VALUE, MemoryKind.DRAM, 0);
        assertThatExceptionOfType(ArithmeticException.class)
                .isThrownBy(() -> new BlockTable(List.of(row, row), new long[] {1, 1}));
    }

    private static BlockTable table(long blockBytes, int count) {
        return new BlockTable(
                List.of(new BlockRow(4096, blockBytes, 4096, count, MemoryKind.DRAM, 0)),
                new long[] {4096});
    }
}
