package dev.dormouse.cli.serve;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A part of a start that comes about in a thread of its own, beside the others. Thread-safe. */
final class Aside<T extends @Nullable Object> implements Supplier<T> {
    private final CompletableFuture<T> part;

    private Aside(CompletableFuture<T> part) {
        this.part = part;
    }

    /** Begins. */
    static <T extends @Nullable Object> Aside<T> start(String threadName, Supplier<T> maker) {
        return new Aside<>(
                CompletableFuture.supplyAsync(
                        maker, Thread.ofPlatform().daemon().name(threadName)::start));
    }

    /** Waits for the part, or throws what its making has thrown. */
    @Override
    public T get() {
        try {
            return part.join();
        } catch (CompletionException e) {
            switch (e.getCause()) {
                case RuntimeException cause -> throw cause;
                case Error cause -> throw cause;
                case null, default -> throw e;
            }
        }
    }
}
