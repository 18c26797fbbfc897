package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.FleetException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Many requests at once, each of which must be answered rightly whatever happens meanwhile. */
final class Load implements AutoCloseable {
    private final ExecutorService clients;
    private final Endpoint router;
    private final Oracle oracle;
    private final int requests;
    private final List<Future<Boolean>> answers = new ArrayList<>();

    /**
     * How the requests ended.
     *
     * @param failed requests without an answer
     * @param equal answers that equal the oracle's, token by token
     */
    record Outcome(int failed, int equal) {}

    /** {@code requests} requests, {@code concurrency} at a time. */
    Load(Endpoint router, Oracle oracle, int requests, int concurrency) {
        this.router = router;
        this.oracle = oracle;
        this.requests = requests;
        clients =
                Executors.newFixedThreadPool(
                        concurrency, Thread.ofPlatform().daemon().name("load-", 0).factory());
    }

    void start() {
        for (int i = 0; i < requests; i++) {
            int index = i % oracle.prompts().size();
            answers.add(clients.submit(() -> oracle.answersEqually(router, index)));
        }
    }

    /** Waits for all of them. */
    Outcome await() {
        int failed = 0;
        int equal = 0;
        for (Future<Boolean> answer : answers) {
            try {
                equal += answer.get() ? 1 : 0;
            } catch (ExecutionException e) {
                failed++;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new FleetException("interrupted", e);
            }
        }
        return new Outcome(failed, equal);
    }

    @Override
    public void close() {
        clients.shutdownNow();
    }
}
