package dev.dormouse.transport.local;

import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.WakeDescriptor;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * The thread that waits for an agent's sockets and its readers' processes. It does not depend on
 * the agent's owner, who may compute for seconds. Idle, it takes no time.
 */
final class SocketLoop implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dormouse.transport.local");
    private static final long PAUSE_NANOS = 100_000_000;
    private static final long NANOS_PER_MILLI = 1_000_000;

    private final Set<Watched> watched = ConcurrentHashMap.newKeySet();
    private final WakeDescriptor wake = new WakeDescriptor();
    private final Thread thread;
    private volatile boolean stopping;

    /** Starts the thread. */
    SocketLoop() {
        thread = Thread.ofPlatform().name("dormouse-local-io").daemon().start(this::run);
    }

    /** Waits for one more. */
    void watch(Watched one) {
        watched.add(one);
        wake.wake();
    }

    /**
     * Does not wait for it any more. As long as a thread waits for a socket, the other side does
     * not see that it was closed.
     */
    void forget(Watched one) {
        if (watched.remove(one)) {
            wake.wake();
        }
    }

    /** Looks anew at what to wait for. */
    void wake() {
        wake.wake();
    }

    /** Ends the thread, and abandons what it has watched. Idempotent. */
    @Override
    public void close() {
        stopping = true;
        wake.wake();
        boolean interrupted = false;
        while (thread.isAlive() && thread != Thread.currentThread()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        wake.close();
        watched.forEach(SocketLoop::abandon);
        watched.clear();
    }

    private void run() {
        try (PollSet polls = new PollSet()) {
            List<Watched> round = new ArrayList<>();
            while (!stopping) {
                try {
                    serve(polls, round);
                } catch (RuntimeException | Error e) { // whatever it was, peers must find an answer
                    LOG.log(System.Logger.Level.ERROR, "waiting for sockets failed", e);
                    LockSupport.parkNanos(PAUSE_NANOS); // rather than try again at once, and again
                }
            }
        }
    }

    private void serve(PollSet polls, List<Watched> round) {
        polls.clear();
        round.clear();
        polls.add(wake.descriptor(), PollSet.POLLIN);
        for (Watched each : watched) {
            round.add(each);
            polls.add(each.descriptor(), each.interest());
        }
        polls.await(timeoutMillis(round));
        if (polls.ready(0) != 0) {
            wake.reset();
        }
        for (int i = 0; i < round.size(); i++) {
            serve(round.get(i), polls.ready(i + 1));
        }
    }

    private void serve(Watched each, int events) {
        try {
            if (events != 0) {
                each.ready(events);
            }
            if (each.hasDeadline() && each.deadlineNanos() - System.nanoTime() <= 0) {
                each.expired();
            }
        } catch (RuntimeException | Error e) { // whatever it was, the others must be served
            LOG.log(System.Logger.Level.ERROR, "a connection is given up", e);
            watched.remove(each);
            abandon(each);
        }
    }

    private static void abandon(Watched each) {
        try {
            each.abandon();
        } catch (RuntimeException | Error e) {
            LOG.log(System.Logger.Level.ERROR, "a connection could not be given up", e);
        }
    }

    private static int timeoutMillis(List<Watched> round) {
        long nanos = Long.MAX_VALUE;
        long now = System.nanoTime();
        for (Watched each : round) {
            if (each.hasDeadline()) {
                nanos = Math.min(nanos, Math.max(0, each.deadlineNanos() - now));
            }
        }
        return nanos == Long.MAX_VALUE
                ? -1
                : (int) Math.min(Integer.MAX_VALUE, Math.ceilDiv(nanos, NANOS_PER_MILLI));
    }
}
