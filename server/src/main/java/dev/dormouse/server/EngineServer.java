package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.Engine;
import dev.dormouse.http.HttpListener;
import dev.dormouse.http.JsonBodies;
import dev.dormouse.http.RequestLog;
import dev.dormouse.http.RequestPlaces;
import dev.dormouse.http.TimeLimits;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The HTTP server of one engine: OpenAI's endpoints, health and metrics for everybody, and on a
 * listener of its own what puts the engine to sleep, wakes, pauses and resumes it.
 *
 * <p>Each request has a virtual thread of its own, which talks to the engine by messages only.
 */
public final class EngineServer implements AutoCloseable {
    private static final System.Logger LOGGER = System.getLogger("dormouse.server");

    /**
     * For the next request on a connection too, so well above the time that clients keep idle
     * connections, the JDK's 30 s: one that is closed under a request would lose it.
     */
    private static final Duration CLIENT_TIMEOUT = Duration.ofMinutes(5);

    /**
     * Bodies that are made into prompts at a time, since a list of tokens in JSON takes many times
     * the memory of its text; others wait for the few milliseconds that this takes.
     */
    private static final int MAX_BODIES_READ = 4;

    private static final String MODELS = "/v1/models";
    private static final Pattern REQUEST_ID = Pattern.compile("[\\x21-\\x7e]{1,128}");
    private static final io.helidon.http.HeaderName X_REQUEST_ID =
            HeaderNames.create("X-Request-Id");

    private final Engine engine;
    private final ServerMetrics metrics;
    private final JobRunner runner;
    private final JobReader reader;
    private final Tokenizing tokenizing;
    private final String version;
    private final RequestPlaces places;
    private final Semaphore reading = new Semaphore(MAX_BODIES_READ);
    private final InstantSource clock;
    private final LongSupplier nanoClock;
    private final TimeLimits limits = new TimeLimits();
    private final HttpListener publicListener;
    private final HttpListener adminListener;

    private EngineServer(
            ServerConfig config,
            Engine engine,
            ModelText text,
            InstantSource clock,
            LongSupplier nanoClock) {
        this.engine = engine;
        this.clock = clock;
        this.nanoClock = nanoClock;
        this.metrics = new ServerMetrics(engine, nanoClock);
        this.runner = new JobRunner(engine, metrics, clock);
        this.reader = new JobReader(engine.info(), config, text.tokenizer());
        this.version = config.version();
        this.tokenizing = new Tokenizing(engine.info(), reader, text.tokenizer());
        this.places = new RequestPlaces(config.maxRequestsInFlight());
        ControlRoutes control = new ControlRoutes(new ControlHandlers(engine, metrics.control()));
        StatusRoutes status = new StatusRoutes(engine, metrics, () -> !places.isClosed());
        AdminConfig admin = config.admin();
        try {
            this.adminListener =
                    listen(
                            new HttpListener.Address(
                                    admin.host(), admin.port(), "--admin-host or --admin-port"),
                            config,
                            ListenerRouting.of(
                                    new ApiKeys(
                                            admin.token() == null
                                                    ? List.of()
                                                    : List.of(admin.token())),
                                    "/",
                                    paths -> adminPaths(paths, control, status)));
            try {
                this.publicListener =
                        listen(
                                new HttpListener.Address(
                                        config.host(), config.port(), "--host or --port"),
                                config,
                                ListenerRouting.of(
                                        new ApiKeys(config.apiKeys()),
                                        "/v1/",
                                        paths -> publicPaths(paths, admin, control, status, text)));
            } catch (RuntimeException | Error e) {
                adminListener.close();
                throw e;
            }
        } catch (RuntimeException | Error e) {
            closeParts();
            throw e;
        }
    }

    private HttpListener listen(
            HttpListener.Address address, ServerConfig config, HttpRouting.Builder routing) {
        return HttpListener.start(address, config.maxBodyBytes(), limits, CLIENT_TIMEOUT, routing);
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
        return new EngineServer(config, engine, text, clock, nanoClock);
    }

    /** The port that its public listener is bound to. */
    public int port() {
        return publicListener.port();
    }

    /** The port that its admin listener is bound to. */
    public int adminPort() {
        return adminListener.port();
    }

    /**
     * Takes no new completions from now on and is not ready any more; those that are there go on.
     */
    public void stopAdmitting() {
        places.close();
    }

    /** Waits until every completion is answered; false if some are not by the limit. */
    public boolean awaitAnswers(Duration limit) throws InterruptedException {
        return places.awaitEmpty(limit);
    }

    @Override
    public void close() {
        publicListener.close();
        adminListener.close();
        closeParts();
    }

    private void closeParts() {
        limits.close();
        metrics.close();
    }

    private static void adminPaths(Paths paths, ControlRoutes control, StatusRoutes status) {
        status.addTo(paths);
        control.addChanges(paths);
        control.addQuestions(paths);
    }

    private void publicPaths(
            Paths paths,
            AdminConfig admin,
            ControlRoutes control,
            StatusRoutes status,
            ModelText text) {
        CompletionsHandler completions = new CompletionsHandler(reader, text.tokenizer());
        ChatHandler chat = new ChatHandler(reader, text);
        paths.post("/v1/completions", (request, response) -> admit(completions, request, response));
        paths.post("/v1/chat/completions", (request, response) -> admit(chat, request, response));
        paths.get(MODELS, (request, response) -> Answers.send(response, models()));
        paths.get(
                MODELS + "/*",
                (request, response) -> Answers.send(response, model(request.path().path())));
        paths.post(
                "/tokenize",
                (request, response) ->
                        Answers.send(response, tokenizing.tokenize(JsonBodies.bytes(request))));
        paths.post(
                "/detokenize",
                (request, response) ->
                        Answers.send(response, tokenizing.detokenize(JsonBodies.bytes(request))));
        paths.get(
                "/version",
                (request, response) ->
                        Answers.send(response, Answers.JSON.objectNode().put("version", version)));
        paths.get(
                "/load",
                (request, response) ->
                        Answers.send(
                                response, Answers.JSON.objectNode().put("server_load", load())));
        status.addTo(paths);
        control.addQuestions(paths);
        if (admin.alsoPublic()) {
            control.addChanges(paths);
        } else {
            control.addSignposts(paths);
        }
    }

    /** Completions that are read or served now. */
    private int load() {
        return places.taken();
    }

    private void admit(JobSource source, ServerRequest request, ServerResponse response)
            throws InterruptedException {
        if (places.isClosed()) {
            // Nothing shall be on its way here when the connection ends with the process.
            response.header(HeaderValues.CONNECTION_CLOSE);
            throw ApiException.of(
                    503, "engine_unavailable", "the engine shuts down; ask another one");
        }
        @Nullable String refusal = JsonBodies.refusal(request.headers());
        if (refusal != null) {
            throw ApiException.of(400, "unsupported_media_type", refusal);
        }
        if (!places.tryTake()) {
            throw ApiException.of(
                    503,
                    "engine_busy",
                    places.most() + " requests are in flight already; try again later");
        }
        try {
            generate(source, request, response);
        } finally {
            places.leave();
        }
    }

    private void generate(JobSource source, ServerRequest request, ServerResponse response)
            throws InterruptedException {
        String requestId = requestId(request);
        response.header(X_REQUEST_ID, requestId);
        RequestLog log =
                RequestLog.begin(
                        LOGGER, request.path().path(), requestId, request.headers(), nanoClock);
        try {
            log.ended(runner.run(read(source, JsonBodies.bytes(request), requestId), response));
        } catch (ApiException e) {
            log.ended(e.code());
            throw e;
        }
    }

    /** Whoever holds the prompt of a request that is refused here is told so. */
    private Job read(JobSource source, byte[] bytes, String requestId) throws InterruptedException {
        reading.acquire();
        try {
            RequestBody body = RequestBody.parse(bytes);
            try {
                body.requireUnicode();
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

    private ObjectNode models() {
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("object", "list");
        answer.putArray("data").add(model());
        return answer;
    }

    private ObjectNode model() {
        return Answers.JSON
                .objectNode()
                .put("id", engine.info().servedModelName())
                .put("object", "model")
                .put("created", clock.instant().getEpochSecond())
                .put("owned_by", "dormouse")
                .put("max_model_len", engine.info().maxModelLength());
    }

    private ObjectNode model(String path) {
        reader.requireModel(path.substring(MODELS.length() + 1));
        return model();
    }
}
