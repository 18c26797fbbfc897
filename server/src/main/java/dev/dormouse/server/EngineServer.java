package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.http.ClientConnection;
import dev.dormouse.http.ClientConnections;
import dev.dormouse.http.Refusals;
import dev.dormouse.http.TimeLimits;
import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.time.InstantSource;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;

/**
 * The HTTP server of one engine: OpenAI's endpoints, vLLM's control endpoints, health and metrics.
 *
 * <p>Each request has a virtual thread of its own, which talks to the engine by messages only.
 */
public final class EngineServer implements AutoCloseable {
    private static final Logger LOGGER = System.getLogger("dormouse.server");

    /**
     * Bodies that are made into prompts at a time, since a list of tokens in JSON takes many times
     * the memory of its text; others wait for the few milliseconds that this takes.
     */
    private static final int MAX_BODIES_READ = 4;

    private static final Pattern REQUEST_ID = Pattern.compile("[\\x21-\\x7e]{1,128}");
    private static final io.helidon.http.HeaderName X_REQUEST_ID =
            HeaderNames.create("X-Request-Id");

    /**
     * For the next request on a connection too, so well above the time that clients keep idle
     * connections, the JDK's 30 s: one that is closed under a request would lose it.
     */
    private static final Duration CLIENT_TIMEOUT = Duration.ofMinutes(5);

    private final Engine engine;
    private final ServerMetrics metrics;
    private final JobRunner runner;
    private final ControlHandlers control;
    private final JobReader reader;
    private final Tokenizing tokenizing;
    private final int maxRequestsInFlight;
    private final Semaphore places;
    private final Semaphore reading = new Semaphore(MAX_BODIES_READ);
    private final InstantSource clock;
    private final TimeLimits limits = new TimeLimits();
    private final WebServer server;

    private EngineServer(
            ServerConfig config,
            Engine engine,
            ModelText text,
            InstantSource clock,
            LongSupplier nanoClock) {
        this.engine = engine;
        this.clock = clock;
        this.metrics = new ServerMetrics(engine, nanoClock);
        this.runner = new JobRunner(engine, metrics, clock);
        this.control = new ControlHandlers(engine, metrics.control());
        this.reader = new JobReader(engine.info(), config.legs());
        this.tokenizing = new Tokenizing(engine.info(), reader, text.tokenizer());
        this.maxRequestsInFlight = config.maxRequestsInFlight();
        this.places = new Semaphore(maxRequestsInFlight);
        this.server =
                WebServer.builder()
                        .host(config.host())
                        .port(config.port())
                        .shutdownHook(false)
                        // Without it a small piece waits for the client's delayed acknowledgement.
                        .connectionOptions(options -> options.tcpNoDelay(true))
                        .protocolsDiscoverServices(false)
                        .addConnectionSelector(new ClientConnections(limits, CLIENT_TIMEOUT))
                        .maxPayloadSize(config.maxBodyBytes())
                        .directHandlers(Refusals.handlers())
                        .routing(routing -> route(routing, text))
                        .build()
                        .start();
    }

    /**
     * Starts to serve.
     *
     * @param engine stays the caller's, which closes it after the server
     * @param text how the engine's model reads and writes text
     * @param clock gives the answers' time of creation
     * @param nanoClock measures latencies
     * @throws IllegalStateException if the address cannot be bound; the message names it
     */
    public static EngineServer start(
            ServerConfig config,
            Engine engine,
            ModelText text,
            InstantSource clock,
            LongSupplier nanoClock) {
        EngineServer server = new EngineServer(config, engine, text, clock, nanoClock);
        if (!server.server.isRunning()) { // Helidon logs the cause and says nothing else
            server.close();
            throw new IllegalStateException(
                    "cannot listen on "
                            + config.host()
                            + " port "
                            + config.port()
                            + ": the port is in use or the host is not this machine's; change --host or --port");
        }
        return server;
    }

    /** The port that it listens on. */
    public int port() {
        return server.port();
    }

    @Override
    public void close() {
        server.stop();
        limits.close();
        metrics.close();
    }

    private void route(HttpRouting.Builder routing, ModelText text) {
        CompletionsHandler completions = new CompletionsHandler(reader, text.tokenizer());
        ChatHandler chat = new ChatHandler(reader, text);
        routing.addFilter(
                        (chain, request, response) -> {
                            ClientConnection.CURRENT.get().endIfAsked(request, response);
                            chain.proceed();
                        })
                .post(
                        "/v1/completions",
                        (request, response) -> admit(completions, request, response))
                .post("/v1/chat/completions", (request, response) -> admit(chat, request, response))
                .get("/v1/models", (request, response) -> Answers.send(response, models()))
                .post(
                        "/tokenize",
                        (request, response) ->
                                Answers.send(response, tokenizing.tokenize(body(request))))
                .post(
                        "/detokenize",
                        (request, response) ->
                                Answers.send(response, tokenizing.detokenize(body(request))))
                .get("/health", (request, response) -> health(response, healthy()))
                .get("/ready", (request, response) -> health(response, ready()))
                .get("/metrics", (request, response) -> metrics(response))
                .post(
                        "/sleep",
                        (request, response) ->
                                Answers.send(response, control.sleep(parameters(request))))
                .post(
                        "/wake_up",
                        (request, response) ->
                                Answers.send(response, control.wake(parameters(request))))
                .post(
                        "/release_kv_cache_memory",
                        (request, response) -> Answers.send(response, control.releaseKvCache()))
                .get(
                        "/is_sleeping",
                        (request, response) -> Answers.send(response, control.isSleeping()))
                .post(
                        "/pause",
                        (request, response) ->
                                Answers.send(response, control.pause(parameters(request))))
                .post("/resume", (request, response) -> Answers.send(response, control.resume()))
                .get(
                        "/is_paused",
                        (request, response) -> Answers.send(response, control.isPaused()))
                .post(
                        "/reset_prefix_cache",
                        (request, response) -> Answers.send(response, control.resetPrefixCache()))
                .any(EngineServer::unknown)
                .error(
                        ApiException.class,
                        (request, response, error) -> Answers.send(response, error))
                .error(Exception.class, EngineServer::unexpected);
    }

    private void admit(JobSource source, ServerRequest request, ServerResponse response)
            throws InterruptedException {
        if (!places.tryAcquire()) {
            throw ApiException.of(
                    503,
                    "engine_busy",
                    maxRequestsInFlight + " requests are in flight already; try again later");
        }
        try {
            generate(source, request, response);
        } finally {
            places.release();
        }
    }

    private void generate(JobSource source, ServerRequest request, ServerResponse response)
            throws InterruptedException {
        String requestId = requestId(request);
        response.header(X_REQUEST_ID, requestId);
        runner.run(read(source, body(request), requestId), response);
    }

    /** Whoever holds the prompt of a request that is refused here is told so. */
    private Job read(JobSource source, byte[] bytes, String requestId) throws InterruptedException {
        reading.acquire();
        try {
            RequestBody body = RequestBody.parse(bytes);
            try {
                return source.job(body, requestId);
            } catch (ApiException e) {
                if (body.node("kv_transfer_params") instanceof ObjectNode json) {
                    KvTransferParams params = KvTransferParams.of(json);
                    if (params.problem() == null) { // otherwise they tell nobody's address
                        engine.decline(params);
                    }
                }
                throw e;
            }
        } finally {
            reading.release();
        }
    }

    private static String requestId(ServerRequest request) {
        String given = request.headers().first(X_REQUEST_ID).orElse("");
        return REQUEST_ID.matcher(given).matches() ? given : UUID.randomUUID().toString();
    }

    private static ControlParameters parameters(ServerRequest request) {
        return new ControlParameters(request.query(), body(request));
    }

    private static byte[] body(ServerRequest request) {
        if (!request.content().hasEntity()) {
            return new byte[0];
        }
        try {
            return request.content().inputStream().readAllBytes();
        } catch (IOException e) {
            throw ApiException.badRequest(null, "the body cannot be read: " + e.getMessage());
        }
    }

    private ObjectNode models() {
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("object", "list");
        ArrayNode data = answer.putArray("data");
        data.addObject()
                .put("id", engine.info().servedModelName())
                .put("object", "model")
                .put("created", clock.instant().getEpochSecond())
                .put("owned_by", "dormouse")
                .put("max_model_len", engine.info().maxModelLength());
        return answer;
    }

    /** Alive: a sleeping engine is, and must not be restarted for it. */
    private boolean healthy() {
        Phase phase = engine.state().phase();
        return phase != Phase.FAILED && phase != Phase.CLOSED;
    }

    /** Would answer a request now. */
    private boolean ready() {
        return engine.state().phase() == Phase.AWAKE && !engine.state().paused();
    }

    private void health(ServerResponse response, boolean good) {
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("status", good ? "ok" : "unavailable");
        answer.put("phase", ControlHandlers.phase(engine.state()));
        response.status(good ? Status.OK_200 : Status.SERVICE_UNAVAILABLE_503);
        response.header(HeaderNames.CONTENT_TYPE, "application/json");
        response.send(answer.toString());
    }

    private void metrics(ServerResponse response) {
        response.header(HeaderNames.CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
        response.send(metrics.scrape());
    }

    private static void unknown(ServerRequest request, ServerResponse response) {
        String what = request.prologue().method().text() + " " + request.path().path();
        Answers.send(response, ApiException.of(404, "not_found", what + " does not exist here"));
    }

    private static void unexpected(
            ServerRequest request, ServerResponse response, Exception error) {
        if (error instanceof io.helidon.http.HttpException http) {
            Answers.send(
                    response,
                    ApiException.of(
                            http.status().code(), "http_error", String.valueOf(http.getMessage())));
            return;
        }
        LOGGER.log(Level.ERROR, "request failed: path=" + request.path().path(), error);
        Answers.send(
                response,
                ApiException.of(500, "internal_error", "the server failed; its log has the cause"));
    }
}
