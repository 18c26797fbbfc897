package dev.dormouse.cli.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Many requests at once, to see that each is answered whatever happens meanwhile. */
final class Load implements AutoCloseable {
    private final ExecutorService clients;
    private final List<Future<Boolean>> answers = new ArrayList<>();

    /** Starts {@code requests} requests, {@code concurrency} at a time. */
    Load(Endpoint router, Oracle oracle, int requests, int concurrency) {
        clients =
                Executors.newFixedThreadPool(
                        concurrency, Thread.ofPlatform().daemon().name("load-", 0).factory());
        for (int i = 0; i < requests; i++) {
            String prompt = oracle.prompts().get(i % oracle.prompts().size());
            answers.add(
                    clients.submit(
                            () ->
                                    router.complete(prompt, oracle.tokens()).tokens().size()
                                            == oracle.tokens()));
        }
    }

    /** Waits for all of them; answers how many ended with an error or with too few tokens. */
    int awaitErrors() {
        int errors = 0;
        for (Future<Boolean> answer : answers) {
            errors += answered(answer) ? 0 : 1;
        }
        return errors;
    }

    private static boolean answered(Future<Boolean> answer) {
        try {
            return answer.get();
        } catch (ExecutionException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new DemoFailure("interrupted", e);
        }
    }

    @Override
    public void close() {
        clients.shutdownNow();
    }
}
