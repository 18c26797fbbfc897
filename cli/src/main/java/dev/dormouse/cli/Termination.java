package dev.dormouse.cli;

import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Closes a process's parts in order when it ends, by itself or by SIGTERM or SIGINT. */
public final class Termination {
    private static final System.Logger LOG = System.getLogger("dormouse.cli");

    private final CountDownLatch ended = new CountDownLatch(1);

    private Termination() {}

    /** Closes these, the first first, when the process ends. */
    public static Termination closing(AutoCloseable... parts) {
        Termination termination = new Termination();
        List<AutoCloseable> inOrder = List.of(parts);
        atEnd(() -> termination.close(inOrder));
        return termination;
    }

    /**
     * As {@link #closing}, for a process that serves until it is told to end: its status is then 0,
     * where the JVM's own would be the signal's, or 1 if a part could not be closed.
     */
    public static Termination serving(AutoCloseable... parts) {
        Termination termination = new Termination();
        List<AutoCloseable> inOrder = List.of(parts);
        atEnd(() -> Runtime.getRuntime().halt(termination.close(inOrder) ? 0 : 1));
        return termination;
    }

    private static void atEnd(Runnable action) {
        Runtime.getRuntime().addShutdownHook(new Thread(action, "dormouse-shutdown"));
    }

    /** Waits until the process has been told to end, and its parts are closed. */
    public void await() throws InterruptedException {
        ended.await();
    }

    /** False if a part could not be closed. */
    private boolean close(List<AutoCloseable> parts) {
        boolean good = true;
        for (AutoCloseable part : parts) {
            try {
                part.close();
            } catch (Exception e) {
                good = false;
                LOG.log(
                        System.Logger.Level.WARNING,
                        "closing failed: part=" + part.getClass().getSimpleName(),
                        e);
            }
        }
        ended.countDown();
        return good;
    }
}
