package dev.dormouse.router;

import dev.dormouse.http.TimeLimits;
import dev.dormouse.router.routing.Engine;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Asks every engine again and again, one virtual thread each: {@code /ready} whether it takes
 * requests, and if not, {@code /health} whether it lives.
 */
final class HealthMonitor implements AutoCloseable {
    private static final Logger LOGGER = System.getLogger("dormouse.router");

    private final HttpClient http;
    private final TimeLimits limits;
    private final Duration interval;
    private final Duration timeout;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final List<Thread> threads = new ArrayList<>();

    /** {@code timeout} bounds one check, {@code interval} is the pause after it. */
    HealthMonitor(HttpClient http, TimeLimits limits, Duration interval, Duration timeout) {
        this.http = http;
        this.limits = limits;
        this.interval = interval;
        this.timeout = timeout;
    }

    /** Starts to watch {@code engines}. */
    void start(List<Engine> engines) {
        for (Engine engine : engines) {
            threads.add(
                    Thread.ofVirtual()
                            .name("dormouse-router-health-" + engine.name())
                            .start(() -> watch(engine)));
        }
    }

    @Override
    public void close() {
        stopped.countDown();
        threads.forEach(Thread::interrupt);
    }

    private void watch(Engine engine) {
        Engine.Health reported = engine.health();
        try {
            do {
                Engine.Health now = check(engine);
                if (stopped.getCount() == 0) {
                    return;
                }
                engine.health(now);
                if (!now.equals(reported)) {
                    reported = now;
                    LOGGER.log(
                            now.alive() ? Level.INFO : Level.WARNING,
                            "engine health changed: engine={0} readiness={1} detail=\"{2}\"",
                            engine.name(),
                            now.readiness(),
                            now.detail());
                }
            } while (!stopped.await(interval.toNanos(), TimeUnit.NANOSECONDS));
        } catch (InterruptedException e) {
            // The router stops.
        }
    }

    private Engine.Health check(Engine engine) throws InterruptedException {
        try {
            int ready = status(engine, "/ready");
            int alive = ready == 200 ? ready : status(engine, "/health");
            return Engine.Health.ofAnswers(ready, alive);
        } catch (CancellationException e) {
            return new Engine.Health(Engine.Readiness.DOWN, "silent for " + timeout);
        } catch (ExecutionException e) {
            return new Engine.Health(Engine.Readiness.DOWN, "unreachable");
        }
    }

    private int status(Engine engine, String path) throws ExecutionException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(engine.resolve(path)).build();
        CompletableFuture<HttpResponse<Void>> answer =
                http.sendAsync(request, HttpResponse.BodyHandlers.discarding());
        try (var _ = limits.start(timeout, () -> answer.cancel(true))) {
            return answer.get().statusCode();
        } finally {
            answer.cancel(true);
        }
    }
}
