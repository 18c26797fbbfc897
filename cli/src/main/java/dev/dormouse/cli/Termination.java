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
        Runtime.getRuntime()
                .addShutdownHook(new Thread(() -> termination.close(inOrder), "dormouse-shutdown"));
        return termination;
    }

    /** Waits until the process has been told to end, and its parts are closed. */
    public void await() throws InterruptedException {
        ended.await();
    }

    private void close(List<AutoCloseable> parts) {
        for (AutoCloseable part : parts) {
            try {
                part.close();
            } catch (Exception e) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "closing failed: part=" + part.getClass().getSimpleName(),
                        e);
            }
        }
        ended.countDown();
    }
}
