package dev.dormouse.connector;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/** Handshake threads that run when the test says so. */
final class ModelExecutor implements Executor {
    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private int capacity = Integer.MAX_VALUE;

    @Override
    public void execute(Runnable task) {
        if (tasks.size() >= capacity) {
            throw new RejectedExecutionException("full");
        }
        tasks.add(task);
    }

    void setCapacity(int tasks) {
        capacity = tasks;
    }

    int pending() {
        return tasks.size();
    }

    /** Runs the oldest handshake, if there is one. */
    boolean runNext() {
        Runnable task = tasks.poll();
        if (task == null) {
            return false;
        }
        task.run();
        return true;
    }
}
