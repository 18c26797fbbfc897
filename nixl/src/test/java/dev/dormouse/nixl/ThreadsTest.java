package dev.dormouse.nixl;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Two agents of one process: who drives them, and who may call them. */
class ThreadsTest {
    private static final int BLOCK_BYTES = 4096;
    private static final int BLOCKS_PER_THREAD = 8;
    private static final int THREADS = 4;
    private static final int BLOCKS = THREADS * BLOCKS_PER_THREAD;

    private NixlAgent owner;
    private NixlAgent reader;
    private Region source;
    private Region target;
    private RemoteAgent remote;

    @BeforeEach
    void start() {
        Natives.nixlDirectory();
        owner = agent(NixlAgentConfig.builder("owner").maxNotificationBytes(8));
        reader = agent(NixlAgentConfig.builder("reader"));
        source = new Region(owner, BLOCKS * BLOCK_BYTES);
        target = new Region(reader, BLOCKS * BLOCK_BYTES);
        Pattern.fill(source.memory, 1);
        remote = reader.load(owner.localMetadata());
    }

    @AfterEach
    void stop() {
        if (reader != null) {
            reader.close();
            owner.close();
        }
    }

    @Test
    void withoutProgressThreadsPollingBothSidesMovesBytesAndMessages() {
        int[] all = Transfers.range(BLOCKS);
        Transfer read =
                reader.createTransfer(
                        TransferOperation.READ,
                        reader.prepare(target.blocks(BLOCK_BYTES, BLOCKS)),
                        all,
                        remote.prepare(source.blocks(BLOCK_BYTES, BLOCKS)),
                        all,
                        "done".getBytes(UTF_8));
        read.post();
        List<Notification> got = new ArrayList<>();
        Await.until(
                "the read and its notification",
                () -> {
                    got.addAll(owner.drainNotifications());
                    return read.state().isTerminal() && !got.isEmpty();
                });

        assertThat(read.state()).isInstanceOf(TransferState.Done.class);
        assertThat(got).containsExactly(new Notification("reader", "done".getBytes(UTF_8)));
        assertThat(Pattern.mismatch(target.memory, 1, 0)).isEqualTo(-1);
        assertThat(read.telemetry()).isEmpty();
    }

    @Test
    void messagesOverTheLimitAreDroppedAndCounted() {
        remote.notify(new byte[9]);
        remote.notify("in time".getBytes(UTF_8));
        List<Notification> got = new ArrayList<>();
        Await.until(
                "the short message",
                () -> {
                    reader.drainNotifications();
                    got.addAll(owner.drainNotifications());
                    return !got.isEmpty();
                });

        assertThat(got).containsExactly(new Notification("reader", "in time".getBytes(UTF_8)));
        assertThat(owner.rejectedNotifications()).isEqualTo(1);
        assertThat(reader.rejectedNotifications()).isZero();
    }

    @Test
    void manyThreadsShareAnAgent() throws Exception {
        LocalList local = reader.prepare(target.blocks(BLOCK_BYTES, BLOCKS));
        RemoteList from = remote.prepare(source.blocks(BLOCK_BYTES, BLOCKS));
        try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            List<Callable<Long>> readers = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                int first = i * BLOCKS_PER_THREAD;
                readers.add(() -> readAgainAndAgain(local, from, first));
            }
            for (Future<Long> mismatch : threads.invokeAll(readers)) {
                assertThat(mismatch.get()).isEqualTo(-1);
            }
        }
        local.close();
        from.close();
    }

    /** Reads the same blocks, shifted by one each time, and checks each time. */
    private long readAgainAndAgain(LocalList local, RemoteList from, int first) {
        for (int round = 0; round < 150; round++) {
            int[] here = new int[BLOCKS_PER_THREAD];
            int[] there = new int[BLOCKS_PER_THREAD];
            for (int i = 0; i < BLOCKS_PER_THREAD; i++) {
                here[i] = first + i;
                there[i] = (first + i + round) % BLOCKS;
            }
            Transfer read = reader.createTransfer(TransferOperation.READ, local, here, from, there);
            read.post();
            Await.until(
                    "end of " + read,
                    () -> {
                        owner.drainNotifications();
                        return read.state().isTerminal();
                    });
            read.close();
            for (int i = 0; i < BLOCKS_PER_THREAD; i++) {
                MemorySegment block =
                        target.memory.asSlice((long) here[i] * BLOCK_BYTES, BLOCK_BYTES);
                long mismatch = Pattern.mismatch(block, 1, (long) there[i] * BLOCK_BYTES);
                if (mismatch >= 0) {
                    return mismatch;
                }
            }
        }
        return -1;
    }

    private static NixlAgent agent(NixlAgentConfig.Builder config) {
        NixlAgent agent = NixlAgent.create(config.progressThread(false).build());
        agent.createBackend("UCX", Map.of());
        return agent;
    }
}
