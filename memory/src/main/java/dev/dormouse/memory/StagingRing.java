package dev.dormouse.memory;

import dev.dormouse.cuda.Cleanup;
import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaEvent;
import dev.dormouse.cuda.CudaStream;
import dev.dormouse.cuda.DeviceSpan;
import dev.dormouse.cuda.PinnedMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A little pinned host memory that copies between a GPU and ordinary host memory go through, chunk
 * by chunk: to pin memory takes many times as long as the bus takes to copy it. Memory and threads
 * are there from the start, so that a copy asks the host for nothing.
 *
 * <p>One thread makes all calls, and it alone speaks with the device; workers move the bytes
 * between slots and ordinary memory meanwhile. No call returns, whether it failed or not, while
 * anything that it began goes on.
 */
final class StagingRing implements AutoCloseable {
    /** Small enough for the caches: with 8 MiB a wake reached 33 GB/s instead of 40 on an H200. */
    private static final long SLOT_BYTES = 2L << 20;

    private static final int MAX_THREADS = 16;

    /**
     * So that a worker finds its next chunk ready, and one that is late does not hold the others.
     */
    private static final int SLOTS_PER_THREAD = 2;

    /** Copies that the device has ahead of it, so that it never waits for this host's next call. */
    private static final int QUEUED_COPIES = 4;

    /**
     * How large a ring is.
     *
     * @param slotBytes of a chunk, whole pages
     * @param threads that move bytes
     */
    record Shape(long slotBytes, int threads) {
        /**
         * For this machine: half of its cores, which leaves the others to the host's other work.
         */
        static Shape advised() {
            int cores = Runtime.getRuntime().availableProcessors();
            return new Shape(SLOT_BYTES, Math.clamp(cores / 2, 1, MAX_THREADS));
        }

        int slots() {
            return workingSlots() + QUEUED_COPIES;
        }

        private int workingSlots() {
            return SLOTS_PER_THREAD * threads;
        }

        /** All pinned memory. */
        long lengthBytes() {
            return slots() * slotBytes;
        }
    }

    /** What workers do with a chunk. */
    @FunctionalInterface
    interface ChunkWork {
        /**
         * Moves its bytes, in a worker's thread.
         *
         * @param offsetBytes of the chunk in the device's memory
         * @param staged the chunk in pinned memory, as long as the chunk
         */
        void move(long offsetBytes, MemorySegment staged);
    }

    /** What workers do with a part of ordinary memory. */
    @FunctionalInterface
    interface PartWork {
        void run(long offsetBytes, long lengthBytes);
    }

    private final Shape shape;
    private final Deque<Runnable> closing = new ArrayDeque<>();
    private final PinnedMemory memory;
    private final CudaStream stream;
    private final List<Slot> slots = new ArrayList<>();
    private final ThreadPoolExecutor workers;

    /**
     * Pins the memory and starts the threads.
     *
     * @throws dev.dormouse.cuda.CudaException if the host has no room, or the driver refuses;
     *     nothing is kept then
     */
    StagingRing(CudaContext context, Shape shape) {
        this.shape = shape;
        workers = workers(shape.threads());
        try {
            memory = PinnedMemory.allocate(context, shape.lengthBytes());
            closing.addFirst(memory::close);
            stream = CudaStream.create(context);
            closing.addFirst(stream::close);
            for (int i = 0; i < shape.slots(); i++) {
                CudaEvent copied = CudaEvent.create(context);
                closing.addFirst(copied::close);
                slots.add(new Slot(i * shape.slotBytes(), copied));
            }
            closing.addFirst(workers::close);
            workers.prestartAllCoreThreads();
        } catch (RuntimeException | Error e) {
            closeAfter(e);
            throw e;
        }
    }

    private static ThreadPoolExecutor workers(int threads) {
        AtomicInteger number = new AtomicInteger();
        return new ThreadPoolExecutor(
                threads,
                threads,
                0,
                TimeUnit.NANOSECONDS,
                new LinkedBlockingQueue<>(),
                task ->
                        Thread.ofPlatform()
                                .name("dormouse-staging-" + number.getAndIncrement())
                                .daemon()
                                .unstarted(task));
    }

    /** Pinned memory, from the start to the end. */
    long lengthBytes() {
        return shape.lengthBytes();
    }

    /**
     * Copies device memory to where {@code taker} puts each chunk.
     *
     * @throws dev.dormouse.cuda.CudaException if a copy fails; or what {@code taker} throws
     */
    void copyToHost(DeviceSpan source, ChunkWork taker) {
        settled(
                () ->
                        inTwoSteps(
                                chunks(source.lengthBytes()),
                                QUEUED_COPIES,
                                chunk -> {
                                    Slot slot = slot(chunk);
                                    slot.awaitWork();
                                    stream.copyToHost(part(source, chunk), memory, slot.offset);
                                    stream.record(slot.copied);
                                },
                                chunk -> {
                                    slot(chunk).copied.await();
                                    startWork(chunk, part(source, chunk), taker);
                                }));
    }

    /**
     * Copies to device memory what {@code giver} puts into each chunk.
     *
     * @throws dev.dormouse.cuda.CudaException if a copy fails; or what {@code giver} throws
     */
    void copyToDevice(ChunkWork giver, DeviceSpan target) {
        settled(
                () ->
                        inTwoSteps(
                                chunks(target.lengthBytes()),
                                shape.workingSlots(),
                                chunk -> {
                                    slot(chunk).copied.await();
                                    startWork(chunk, part(target, chunk), giver);
                                },
                                chunk -> {
                                    Slot slot = slot(chunk);
                                    slot.awaitWork();
                                    stream.copyToDevice(memory, slot.offset, part(target, chunk));
                                    stream.record(slot.copied);
                                }));
    }

    /** Lets the workers do something with all parts of ordinary memory; each is tried. */
    void forEachPart(long lengthBytes, PartWork work) {
        List<CompletableFuture<Void>> running = new ArrayList<>();
        for (long offset = 0; offset < lengthBytes; offset += shape.slotBytes()) {
            long start = offset;
            long length = Math.min(shape.slotBytes(), lengthBytes - start);
            running.add(CompletableFuture.runAsync(() -> work.run(start, length), workers));
        }
        Cleanup cleanup = new Cleanup();
        running.forEach(part -> cleanup.run(() -> join(part)));
        cleanup.rethrow();
    }

    /** Each chunk's second step comes when {@code between} more have had their first. */
    private static void inTwoSteps(int chunks, int between, IntConsumer first, IntConsumer second) {
        for (int i = 0; i < chunks + between; i++) {
            if (i < chunks) {
                first.accept(i);
            }
            if (i >= between) {
                second.accept(i - between);
            }
        }
    }

    /** Copies, and ends what they have begun. */
    private void settled(Runnable copies) {
        Cleanup cleanup = new Cleanup();
        cleanup.run(copies);
        slots.forEach(slot -> cleanup.run(slot::awaitWork));
        cleanup.run(stream::synchronize);
        cleanup.rethrow();
    }

    private void startWork(int chunk, DeviceSpan part, ChunkWork work) {
        Slot slot = slot(chunk);
        MemorySegment staged = memory.segment().asSlice(slot.offset, part.lengthBytes());
        slot.work =
                CompletableFuture.runAsync(
                        () -> work.move(chunk * shape.slotBytes(), staged), workers);
    }

    private int chunks(long lengthBytes) {
        return Math.toIntExact(Math.ceilDiv(lengthBytes, shape.slotBytes()));
    }

    private Slot slot(int chunk) {
        return slots.get(chunk % slots.size());
    }

    private DeviceSpan part(DeviceSpan all, int chunk) {
        long offset = chunk * shape.slotBytes();
        return all.slice(offset, Math.min(shape.slotBytes(), all.lengthBytes() - offset));
    }

    /** Waits, whatever becomes of the thread: memory may not go under a worker. */
    private static void join(CompletableFuture<Void> work) {
        try {
            work.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException failure ? failure : e;
        }
    }

    /** Gives memory and threads back. Idempotent. */
    @Override
    public void close() {
        Cleanup cleanup = new Cleanup();
        while (!closing.isEmpty()) {
            cleanup.run(closing.removeFirst());
        }
        cleanup.rethrow();
    }

    private void closeAfter(Throwable failure) {
        try {
            close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    /** A chunk's place in the pinned memory. */
    private static final class Slot {
        final long offset;

        /** Passed when the device's last copy of this slot has ended. */
        final CudaEvent copied;

        @Nullable CompletableFuture<Void> work;

        Slot(long offset, CudaEvent copied) {
            this.offset = offset;
            this.copied = copied;
        }

        /** Waits for the worker; its failure is told once. */
        void awaitWork() {
            CompletableFuture<Void> awaited = work;
            work = null;
            if (awaited != null) {
                join(awaited);
            }
        }
    }
}
