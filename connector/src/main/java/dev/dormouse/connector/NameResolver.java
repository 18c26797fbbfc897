package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetAddress;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Looks host names up within a time limit. The platform's look-up has none, and a client chooses
 * the name: each name is looked up once at a time, on a few threads of its own. Shared by all
 * threads.
 */
final class NameResolver implements AutoCloseable {
    private static final int THREADS = 8;
    private static final int QUEUE = 64;
    private static final long IDLE_SECONDS = 30;

    /** The platform's look-up, for which a test can stand in. */
    @FunctionalInterface
    interface Lookup {
        InetAddress[] addresses(String host) throws UnknownHostException;
    }

    private final Lookup lookup;
    private final ThreadPoolExecutor threads;
    private final Map<String, CompletableFuture<List<InetAddress>>> running =
            new ConcurrentHashMap<>();

    NameResolver() {
        this(InetAddress::getAllByName);
    }

    NameResolver(Lookup lookup) {
        this.lookup = lookup;
        threads =
                new ThreadPoolExecutor(
                        THREADS,
                        THREADS,
                        IDLE_SECONDS,
                        TimeUnit.SECONDS,
                        new ArrayBlockingQueue<>(QUEUE),
                        Thread.ofPlatform().name("dormouse-resolver-", 1).daemon().factory());
        threads.allowCoreThreadTimeOut(true);
    }

    /**
     * All addresses of the host, the preferred one first. An address is not looked up.
     *
     * @throws SocketTimeoutException if the limit is over
     * @throws IOException if the host has no address, or too many names are being looked up
     */
    List<InetAddress> resolve(String host, Duration limit) throws IOException {
        if (isLiteral(host)) {
            return List.of(InetAddress.getAllByName(host));
        }
        try {
            return running.computeIfAbsent(host, this::start)
                    .get(limit.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            throw new SocketTimeoutException("name " + host + " was not resolved in time");
        } catch (RejectedExecutionException e) {
            throw new IOException("name " + host + ": too many names are being looked up", e);
        } catch (ExecutionException e) {
            throw new IOException("name " + host + ": " + e.getCause(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("name " + host + ": interrupted", e);
        }
    }

    @Override
    public void close() {
        threads.shutdownNow();
    }

    private CompletableFuture<List<InetAddress>> start(String host) {
        CompletableFuture<List<InetAddress>> answer = new CompletableFuture<>();
        threads.execute(
                () -> {
                    try {
                        List<InetAddress> addresses = List.of(lookup.addresses(host));
                        running.remove(host); // whoever comes from now on looks up anew
                        answer.complete(addresses);
                    } catch (IOException | RuntimeException e) {
                        running.remove(host);
                        answer.completeExceptionally(e);
                    }
                });
        return answer;
    }

    private static boolean isLiteral(String host) {
        return host.contains(":") || host.matches("[0-9.]+");
    }
}
