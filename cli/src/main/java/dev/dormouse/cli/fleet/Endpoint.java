package dev.dormouse.cli.fleet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** One HTTP server of a fleet, an engine's or the router's, as its clients see it. */
public final class Endpoint {
    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final HttpClient HTTP =
            HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .connectTimeout(Duration.ofSeconds(5))
                    .build();

    private final String name;
    private final URI base;

    public Endpoint(String name, URI base) {
        this.name = name;
        this.base = base;
    }

    public URI base() {
        return base;
    }

    /**
     * One completion.
     *
     * @param tokens the generated token ids
     * @param millis time from request to whole answer
     * @param kvTransferParams what a prefill engine hands over, or null
     */
    public record Completion(
            List<Integer> tokens, double millis, @Nullable JsonNode kvTransferParams) {}

    /**
     * A greedy completion of {@code tokens} tokens, end tokens included in the count and never
     * stopped at.
     */
    public Completion complete(String prompt, int tokens) {
        return complete(prompt, tokens, null);
    }

    /** As {@link #complete(String, int)}, with {@code kv_transfer_params}. */
    public Completion complete(String prompt, int tokens, @Nullable JsonNode kvTransferParams) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        body.put("prompt", prompt);
        body.put("max_tokens", tokens);
        body.put("temperature", 0);
        body.put("ignore_eos", true);
        body.put("return_token_ids", true);
        if (kvTransferParams != null) {
            body.set("kv_transfer_params", kvTransferParams);
        }
        long start = System.nanoTime();
        JsonNode answer = post("/v1/completions", body);
        double millis = (System.nanoTime() - start) / 1e6;
        List<Integer> ids = new ArrayList<>();
        answer.path("choices").path(0).path("token_ids").forEach(id -> ids.add(id.asInt()));
        JsonNode params = answer.get("kv_transfer_params");
        return new Completion(ids, millis, params == null || params.isNull() ? null : params);
    }

    /**
     * The prefill leg of a hand-over: the engine holds the prompt's blocks and says where they are.
     */
    public JsonNode prefill(String prompt) {
        ObjectNode params = Json.MAPPER.createObjectNode();
        params.put("do_remote_decode", true);
        params.put("do_remote_prefill", false);
        for (String key :
                List.of("remote_engine_id", "remote_block_ids", "remote_host", "remote_port")) {
            params.putNull(key);
        }
        @Nullable JsonNode handedOver = complete(prompt, 1, params).kvTransferParams();
        if (handedOver == null) {
            throw new FleetException(name + " handed nothing over for a prefill");
        }
        return handedOver;
    }

    /** A streamed answer to a chat message: its events, as they came. */
    public String chat(String message, int tokens) {
        ObjectNode body = Json.MAPPER.createObjectNode();
        body.putArray("messages").addObject().put("role", "user").put("content", message);
        body.put("max_tokens", tokens);
        body.put("stream", true);
        return text("/v1/chat/completions", body);
    }

    /** Posts without a body, as the control endpoints take it. */
    public JsonNode post(String path) {
        return post(path, Json.MAPPER.createObjectNode());
    }

    /** The text that a GET gives. */
    public String get(String path) {
        return send(HttpRequest.newBuilder(base.resolve(path)).GET()).body();
    }

    /** The status that a POST of a completion meets, without judging it. */
    public int status(String prompt) {
        ObjectNode body = Json.MAPPER.createObjectNode().put("prompt", prompt).put("max_tokens", 1);
        return exchange(request("/v1/completions", body)).statusCode();
    }

    /** Posts JSON. */
    public JsonNode post(String path, JsonNode body) {
        return Json.parse(text(path, body));
    }

    /** Posts JSON; the answer may be anything, such as a stream of events, as they came. */
    public String text(String path, JsonNode body) {
        return send(request(path, body)).body();
    }

    private HttpRequest.Builder request(String path, JsonNode body) {
        return HttpRequest.newBuilder(base.resolve(path))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body.toString()));
    }

    private HttpResponse<String> send(HttpRequest.Builder request) {
        HttpResponse<String> response = exchange(request);
        if (response.statusCode() != 200) {
            throw new FleetException(
                    name
                            + " answered "
                            + response.uri().getPath()
                            + " with "
                            + response.statusCode()
                            + ": "
                            + response.body());
        }
        return response;
    }

    private HttpResponse<String> exchange(HttpRequest.Builder request) {
        try {
            return HTTP.send(request.timeout(LIMIT).build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new FleetException(name + " did not answer: " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }
}
