package dev.dormouse.connector;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The threads on which handshakes wait for peers, one for each address that is being asked: peers
 * that do not answer hold up nobody but themselves. Handshakes with one address run one after the
 * other. Rejects what exceeds its bounds. Shared by all threads.
 */
final class HandshakePool implements HandshakeThreads, AutoCloseable {
    static final int MAX_PENDING = 512;
    static final int MAX_PENDING_PER_ADDRESS = 16;

    /** Per address what has not ended, the running one first. */
    private final Map<SideChannelAddress, Deque<Runnable>> pending = new HashMap<>();

    private final Map<SideChannelAddress, Thread> threads = new HashMap<>();
    private int total;
    private boolean closed;

    @Override
    public synchronized void execute(SideChannelAddress address, Runnable handshake) {
        Deque<Runnable> queue = pending.get(address);
        if (closed
                || total >= MAX_PENDING
                || (queue != null && queue.size() >= MAX_PENDING_PER_ADDRESS)) {
            throw new RejectedExecutionException(
                    "handshake with "
                            + address
                            + ": "
                            + total
                            + " are pending, "
                            + (queue == null ? 0 : queue.size())
                            + " of them with this address");
        }
        total++;
        if (queue != null) {
            queue.add(handshake);
            return;
        }
        pending.put(address, new ArrayDeque<>(List.of(handshake)));
        threads.put(
                address,
                Thread.ofVirtual()
                        .name("dormouse-handshake")
                        .start(() -> runAll(address, handshake)));
    }

    @Override
    public synchronized void close() {
        closed = true;
        threads.values().forEach(Thread::interrupt);
    }

    private void runAll(SideChannelAddress address, Runnable first) {
        for (Runnable next = first; next != null; next = after(address)) {
            next.run();
        }
    }

    private synchronized @Nullable Runnable after(SideChannelAddress address) {
        total--;
        Deque<Runnable> queue = pending.get(address);
        if (queue != null) {
            queue.remove();
            if (!queue.isEmpty() && !closed) {
                return queue.element();
            }
        }
        pending.remove(address);
        threads.remove(address);
        return null;
    }
}
