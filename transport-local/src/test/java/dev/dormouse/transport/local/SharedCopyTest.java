package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SharedCopyTest {
    private static final int BYTES = 5 << 20;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment here = arena.allocate(BYTES);
    private final MemorySegment there = arena.allocate(BYTES);
    private final List<CopyThread> threads =
            IntStream.range(0, 3).mapToObj(number -> new CopyThread("test-" + number)).toList();

    @AfterEach
    void close() {
        threads.forEach(CopyThread::close);
        arena.close();
    }

    private HostCopy read(int blockBytes, int[] to, int[] from) {
        return HostCopy.of(
                false, new BlockPairs(table(here, blockBytes), to, table(there, blockBytes), from));
    }

    private HostCopy everything() {
        return read(BYTES, new int[] {0}, new int[] {0});
    }

    private static BlockTable table(MemorySegment memory, int blockBytes) {
        int count = BYTES / blockBytes;
        return new BlockTable(
                List.of(
                        new BlockRow(
                                memory.address(),
                                blockBytes,
                                blockBytes,
                                count,
                                MemoryKind.DRAM,
                                0)),
                new long[] {memory.address()});
    }

    private static @Nullable String copyPiece(HostCopy.Piece piece) {
        piece.copy();
        return null;
    }

    private void join(SharedCopy copy) {
        threads.forEach(thread -> thread.submit(copy::join));
        copy.join();
    }

    @Test
    void severalThreadsCopyExactlyTheNamedBlocks() {
        Seeded.forAll(
                40,
                random -> {
                    byte[] theirs = fill(random, there);
                    byte[] expected = fill(random, here);
                    int blockBytes = 1 << random.nextInt(8, 18);
                    int size = BYTES / blockBytes;
                    int count = random.nextInt(1, size + 1);
                    int[] to = some(random, size, count);
                    int[] from = some(random, size, count);
                    for (int i = 0; i < count; i++) {
                        System.arraycopy(
                                theirs,
                                from[i] * blockBytes,
                                expected,
                                to[i] * blockBytes,
                                blockBytes);
                    }
                    SharedCopy copy =
                            new SharedCopy(read(blockBytes, to, from), SharedCopyTest::copyPiece);

                    join(copy);

                    assertThat(copy.awaitEnd()).isNull();
                    assertThat(here.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expected);
                    assertThat(there.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(theirs);
                });
    }

    @Test
    void aThreadThatCannotEvenSayWhatFailedFailsTheCopy() {
        SharedCopy copy =
                new SharedCopy(
                        everything(),
                        piece -> {
                            throw new Unspeakable();
                        });

        join(copy);

        assertThat(copy.awaitEnd()).isEqualTo("a thread that copies has failed");
    }

    /** As an OutOfMemoryError can be. */
    private static final class Unspeakable extends Error {
        private static final long serialVersionUID = 1;

        @Override
        public String getMessage() {
            throw this;
        }
    }

    @Test
    void aThreadGoesOnAfterATaskThatFails() {
        AtomicInteger done = new AtomicInteger();

        threads.getFirst()
                .submit(
                        () -> {
                            throw new IllegalStateException("on purpose");
                        });
        threads.getFirst().submit(done::incrementAndGet);

        Await.until("the next task is done", () -> done.get() == 1);
    }

    private static byte[] fill(SplittableRandom random, MemorySegment memory) {
        byte[] bytes = new byte[BYTES];
        random.nextBytes(bytes);
        memory.copyFrom(MemorySegment.ofArray(bytes));
        return bytes;
    }

    /** In some order, each at most once. */
    private static int[] some(SplittableRandom random, int size, int count) {
        List<Integer> all = new ArrayList<>(IntStream.range(0, size).boxed().toList());
        for (int i = 0; i < count; i++) {
            Collections.swap(all, i, random.nextInt(i, size));
        }
        return all.stream().limit(count).mapToInt(Integer::intValue).toArray();
    }

    @Test
    void itEndsWhenNoPieceIsUnderWay() throws Exception {
        CountDownLatch goOn = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(threads.size());
        AtomicInteger underWay = new AtomicInteger();
        SharedCopy copy =
                new SharedCopy(
                        everything(),
                        piece -> {
                            if (underWay.incrementAndGet() <= threads.size()) {
                                begun.countDown();
                                Await.until("they may end", () -> goOn.getCount() == 0);
                            }
                            piece.copy();
                            underWay.decrementAndGet();
                            return null;
                        });
        threads.forEach(thread -> thread.submit(copy::join));
        begun.await();
        copy.join(); // all the others
        AtomicInteger atTheEnd = new AtomicInteger(-1);
        Thread waiting =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    copy.awaitEnd();
                                    atTheEnd.set(underWay.get());
                                });
        Await.until("it waits", () -> waiting.getState() == Thread.State.WAITING);

        goOn.countDown();
        waiting.join();

        assertThat(atTheEnd).hasValue(0);
        assertThat(copy.awaitEnd()).isNull();
    }

    @Test
    void aPieceThatFailsFailsTheWholeAndNoOtherOneBegins() throws Exception {
        CountDownLatch others = new CountDownLatch(threads.size());
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicInteger begun = new AtomicInteger();
        SharedCopy copy =
                new SharedCopy(
                        everything(),
                        piece -> {
                            if (begun.incrementAndGet() > threads.size()) {
                                return "revoked";
                            }
                            others.countDown();
                            Await.until("they may end", () -> goOn.getCount() == 0);
                            return copyPiece(piece);
                        });
        threads.forEach(thread -> thread.submit(copy::join));
        others.await();

        copy.join(); // fails, and leaves
        goOn.countDown();

        assertThat(copy.awaitEnd()).isEqualTo("revoked");
        assertThat(begun).hasValue(threads.size() + 1);
    }

    @Test
    void anErrorInOneThreadFailsTheWhole() {
        AtomicInteger pieces = new AtomicInteger();
        SharedCopy copy =
                new SharedCopy(
                        everything(),
                        piece -> {
                            if (pieces.incrementAndGet() == 5) {
                                throw new InternalError("no such page");
                            }
                            return copyPiece(piece);
                        });

        join(copy);

        assertThat(copy.awaitEnd()).contains("no such page");
    }

    @Test
    void whoJoinsAfterTheEndTouchesNothing() {
        AtomicInteger pieces = new AtomicInteger();
        SharedCopy copy =
                new SharedCopy(
                        everything(),
                        piece -> {
                            pieces.incrementAndGet();
                            return copyPiece(piece);
                        });
        copy.join();
        assertThat(copy.awaitEnd()).isNull();
        int all = pieces.get();

        copy.join();

        assertThat(pieces).hasValue(all);
        assertThat(all).isEqualTo((int) (BYTES / HostCopy.PIECE_BYTES));
    }
}
