package dev.dormouse.connector;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.RejectedExecutionException;

/** Handshake threads that run when the test says so. */
final class ModelExecutor implements HandshakeThreads {
    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private boolean stuck;
    private boolean broken;
    private int capacity = Integer.MAX_VALUE;

    @Override
    public void execute(SideChannelAddress address, Runnable task) {
        if (broken) {
            throw new IllegalStateException("injected");
        }
        if (tasks.size() >= capacity) {
            throw new RejectedExecutionException("full");
        }
        tasks.add(task);
    }

    /** Nothing runs any more, although it was accepted. */
    void setStuck(boolean value) {
        stuck = value;
    }

    /** Whoever hands over a task meets an error that no executor has. */
    void setBroken(boolean value) {
        broken = value;
    }

    void setCapacity(int tasks) {
        capacity = tasks;
    }

    int pending() {
        return tasks.size();
    }

    /** Runs the oldest handshake, if there is one. */
    boolean runNext() {
        Runnable task = stuck ? null : tasks.poll();
        if (task == null) {
            return false;
        }
        task.run();
        return true;
    }
}
