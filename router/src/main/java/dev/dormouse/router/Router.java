package dev.dormouse.router;

import dev.dormouse.http.HttpListener;
import dev.dormouse.http.TimeLimits;
import dev.dormouse.router.routing.Engine;
import dev.dormouse.router.routing.EnginePool;
import dev.dormouse.router.routing.Role;
import io.helidon.http.Method;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/**
 * A running prefill/decode router. Thread-safe.
 *
 * <p>It owns its listener, its connections to engines and its threads until {@link #close}.
 */
public final class Router implements AutoCloseable {
    private static final Logger LOGGER = System.getLogger("dormouse.router");

    private final HttpListener listener;
    private final EngineRequests requests;
    private final Deque<AutoCloseable> owned;

    private Router(HttpListener listener, EngineRequests requests, Deque<AutoCloseable> owned) {
        this.listener = listener;
        this.requests = requests;
        this.owned = owned;
    }

    /**
     * Starts to listen; engines need not be up yet.
     *
     * @throws RouterException if the address is unknown or cannot be bound
     */
    public static Router start(RouterConfig config) {
        Deque<AutoCloseable> owned = new ArrayDeque<>();
        try {
            Router router = serve(config, owned);
            LOGGER.log(
                    Level.INFO,
                    "router listens: host={0} port={1,number,#} prefill={2} decode={3}",
                    config.host(),
                    router.port(),
                    config.prefillEngines(),
                    config.decodeEngines());
            return router;
        } catch (RuntimeException e) {
            Exception unclosed = closeAll(owned);
            if (unclosed != null) {
                e.addSuppressed(unclosed);
            }
            throw e instanceof RouterException
                    ? e
                    : new RouterException(
                            "router on %s:%d: %s"
                                    .formatted(config.host(), config.port(), e.getMessage()),
                            e);
        }
    }

    /**
     * Prepares the end: takes no new requests from now on, is not ready any more, and waits until
     * those that are there are answered.
     *
     * @return false if some are not by the limit; {@link #close} ends them
     */
    public boolean windDown(Duration limit) throws InterruptedException {
        return requests.windDown(limit);
    }

    /** The port it listens on. */
    public int port() {
        return listener.port();
    }

    /** Stops; requests in flight are broken off. Idempotent. */
    @Override
    public void close() {
        Exception failure = closeAll(owned);
        if (failure != null) {
            throw new RouterException("closing the router failed", failure);
        }
    }

    private static Router serve(RouterConfig config, Deque<AutoCloseable> owned) {
        EnginePool prefill = EnginePool.of(Role.PREFILL, config.prefillEngines());
        EnginePool decode = EnginePool.of(Role.DECODE, config.decodeEngines());
        List<Engine> engines = new ArrayList<>(prefill.engines());
        engines.addAll(decode.engines());

        RouterMetrics metrics = own(owned, new RouterMetrics(System::nanoTime, engines));
        TimeLimits limits = own(owned, new TimeLimits());
        ExecutorService threads =
                Executors.newThreadPerTaskExecutor(
                        Thread.ofVirtual().name("dormouse-router-upstream-", 0).factory());
        owned.push(threads::shutdownNow);
        HttpClient http = client(config, threads, owned);
        HealthMonitor health =
                own(
                        owned,
                        new HealthMonitor(
                                client(config, threads, owned),
                                limits,
                                config.healthInterval(),
                                config.connectTimeout()));

        UpstreamCalls calls =
                new UpstreamCalls(
                        http, limits, metrics, config.prefillTimeout(), config.decodeTimeout());
        EngineRequests requests =
                new EngineRequests(
                        prefill,
                        decode,
                        new RoutingDriver(
                                calls, new ResponseRelay(metrics), metrics, config.maxBodyBytes()),
                        metrics,
                        limits,
                        config,
                        () -> UUID.randomUUID().toString());
        FrontDoor frontDoor =
                new FrontDoor(
                        routes(
                                requests,
                                new StatusPages(prefill, decode, metrics, requests::isEnding)));
        HttpListener listener =
                own(
                        owned,
                        HttpListener.start(
                                new HttpListener.Address(
                                        config.host(), config.port(), "--host or --port"),
                                config.maxBodyBytes(),
                                limits,
                                config.clientTimeout(),
                                HttpListener.routing().any(frontDoor)));
        health.start(engines);
        return new Router(listener, requests, owned);
    }

    /**
     * Requests and checks have a client each, and so their own connections: the JDK's takes the one
     * that was idle longest, so that checks would keep some of those open that requests have left.
     */
    private static HttpClient client(
            RouterConfig config, ExecutorService threads, Deque<AutoCloseable> owned) {
        HttpClient client =
                HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .connectTimeout(config.connectTimeout())
                        .followRedirects(HttpClient.Redirect.NEVER)
                        .proxy(HttpClient.Builder.NO_PROXY)
                        .executor(threads)
                        .build();
        owned.push(client::shutdownNow);
        return client;
    }

    private static Map<String, FrontDoor.Route> routes(EngineRequests requests, StatusPages pages) {
        Map<String, FrontDoor.Route> routes = new HashMap<>();
        for (Endpoint endpoint : Endpoint.values()) {
            Method method = endpoint == Endpoint.MODELS ? Method.GET : Method.POST;
            routes.put(
                    endpoint.path(),
                    new FrontDoor.Route(method, (req, res) -> requests.handle(endpoint, req, res)));
        }
        routes.put("/health", new FrontDoor.Route(Method.GET, pages::health));
        routes.put("/health/live", new FrontDoor.Route(Method.GET, pages::live));
        routes.put("/metrics", new FrontDoor.Route(Method.GET, pages::metrics));
        return routes;
    }

    private static <T extends AutoCloseable> T own(Deque<AutoCloseable> owned, T resource) {
        owned.push(resource);
        return resource;
    }

    /** Closes the latest first, all of them; returns what went wrong. */
    private static @Nullable Exception closeAll(Deque<AutoCloseable> owned) {
        Exception failure = null;
        while (true) {
            AutoCloseable next;
            synchronized (owned) {
                next = owned.poll();
            }
            if (next == null) {
                return failure;
            }
            try {
                next.close();
            } catch (Exception e) {
                if (failure == null) {
                    failure = e;
                } else {
                    failure.addSuppressed(e);
                }
            }
        }
    }
}
