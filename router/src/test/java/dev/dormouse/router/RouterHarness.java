package dev.dormouse.router;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.router.routing.Json;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/** A router before one prefill and one decode engine, with a client. */
final class RouterHarness implements AutoCloseable {
    static final String HAND_OVER =
            """
            {"do_remote_prefill":true,"do_remote_decode":false,"remote_engine_id":"p-0",\
            "remote_block_ids":[[3,1,2]],"remote_host":"10.0.0.1","remote_port":5600,\
            "remote_request_id":"cmpl-1-0-ab","remote_registration_generation":7}""";

    // Held, since the log manager forgets a logger that nobody holds.
    private static final Logger HELIDON_LOG = Logger.getLogger("io.helidon");

    static {
        HELIDON_LOG.setLevel(Level.WARNING);
    }

    final FakeEngine prefill;
    final FakeEngine decode;
    final Router router;
    private final HttpClient http = HttpClient.newHttpClient();

    RouterHarness(FakeEngine.Script prefill, FakeEngine.Script decode) {
        this(prefill, decode, _ -> {});
    }

    RouterHarness(
            FakeEngine.Script prefill,
            FakeEngine.Script decode,
            Consumer<RouterConfig.Builder> settings) {
        this.prefill = new FakeEngine(prefill);
        this.decode = new FakeEngine(decode);
        RouterConfig.Builder config =
                RouterConfig.builder()
                        .port(0)
                        .healthInterval(Duration.ofMillis(20))
                        .prefillEngine(this.prefill.url())
                        .decodeEngine(this.decode.url());
        settings.accept(config);
        router = Router.start(config.build());
    }

    /** A prefill engine that hands over {@code params}. */
    static FakeEngine.Script handingOver(String params) {
        return call ->
                call.json(
                        200,
                        "{\"choices\":[{\"text\":\"x\",\"finish_reason\":\"length\"}],"
                                + "\"kv_transfer_params\":"
                                + params
                                + "}");
    }

    static FakeEngine.Script handingOver() {
        return handingOver(HAND_OVER);
    }

    /** A decode engine with one answer. */
    static FakeEngine.Script answering(String body) {
        return call -> call.json(200, body);
    }

    HttpResponse<String> post(String path, String body, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(uri(path))
                        .header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    HttpResponse<String> complete(String body) throws IOException, InterruptedException {
        return post("/v1/completions", body);
    }

    HttpResponse<String> request(String method, String path)
            throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(uri(path))
                        .method(method, HttpRequest.BodyPublishers.noBody())
                        .build();
        return http.send(request, HttpResponse.BodyHandlers.ofString());
    }

    RawClient rawClient() throws IOException {
        return new RawClient(router.port());
    }

    /** The value of one series; {@code labels} is any part of its line's label list. */
    double metric(String name, String... labels) {
        try {
            return request("GET", "/metrics")
                    .body()
                    .lines()
                    .filter(line -> line.startsWith(name + "{") || line.startsWith(name + " "))
                    .filter(line -> Arrays.stream(labels).allMatch(line::contains))
                    .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                    .sum();
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Waits until a series has a value. */
    void awaitMetric(double expected, String name, String... labels) {
        Await.until(
                name + Arrays.toString(labels) + " = " + expected,
                Duration.ofSeconds(30),
                () -> metric(name, labels) == expected,
                () -> metric(name, labels));
    }

    static JsonNode json(String text) {
        try {
            return Json.read(text.getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new AssertionError("not JSON: " + text, e);
        }
    }

    private URI uri(String path) {
        return URI.create("http://127.0.0.1:" + router.port() + path);
    }

    @Override
    public void close() {
        router.close();
        prefill.close();
        decode.close();
        http.shutdownNow();
    }
}
