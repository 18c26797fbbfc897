package dev.dormouse.engine.core;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Messages from any thread to the engine's, bounded. Once closed it takes no more, so that none is
 * left without an answer.
 */
final class Inbox {
    private final int capacity;
    private final Deque<Command> commands = new ArrayDeque<>();
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition arrived = lock.newCondition();
    private boolean woken;
    private boolean closed;

    Inbox(int capacity) {
        this.capacity = capacity;
    }

    /** Adds a message; false if the inbox is full or closed. */
    boolean offer(Command command) {
        lock.lock();
        try {
            if (closed || commands.size() >= capacity) {
                return false;
            }
            commands.addLast(command);
            arrived.signal();
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Ends the wait of whoever waits for messages, or else the next one. By any thread. */
    void wake() {
        lock.lock();
        try {
            woken = true;
            arrived.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Takes everything that is there. */
    List<Command> takeAll() {
        lock.lock();
        try {
            return drain();
        } finally {
            lock.unlock();
        }
    }

    /** Returns when a message is there, after a {@link #wake}, or after {@code timeoutNanos}. */
    void await(long timeoutNanos) throws InterruptedException {
        lock.lock();
        try {
            long leftNanos = timeoutNanos;
            while (commands.isEmpty() && !woken && leftNanos > 0) {
                leftNanos = arrived.awaitNanos(leftNanos);
            }
            woken = false;
        } finally {
            lock.unlock();
        }
    }

    /** Takes no more messages from now on, and hands out the last ones. */
    List<Command> close() {
        lock.lock();
        try {
            closed = true;
            return drain();
        } finally {
            lock.unlock();
        }
    }

    private List<Command> drain() {
        List<Command> taken = new ArrayList<>(commands);
        commands.clear();
        return taken;
    }
}
