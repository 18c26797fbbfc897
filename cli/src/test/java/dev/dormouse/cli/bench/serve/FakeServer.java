package dev.dormouse.cli.bench.serve;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.dormouse.cli.fleet.Json;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * A server of OpenAI's API that generates nothing: it answers as many events as there should be
 * tokens, cut wherever, or what it was told.
 */
final class FakeServer implements AutoCloseable {
    /**
     * An answer.
     *
     * @param pieces what is sent, and flushed, one after the other
     */
    record Reply(int status, List<String> pieces) {}

    private final HttpServer server;
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final List<JsonNode> completions = new CopyOnWriteArrayList<>();
    private final AtomicInteger underWay = new AtomicInteger();
    private final AtomicInteger mostUnderWay = new AtomicInteger();
    private final Function<JsonNode, Reply> script;
    private final boolean tokenizes;

    /**
     * A server that listens.
     *
     * @param tokenizes whether it has {@code /tokenize}, where a token is a character
     */
    FakeServer(boolean tokenizes, Function<JsonNode, Reply> script) throws IOException {
        this.script = script;
        this.tokenizes = tokenizes;
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", this::serve);
        server.start();
    }

    URI base() {
        return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
    }

    /** The completions that were asked for. */
    List<JsonNode> completions() {
        return completions;
    }

    int mostUnderWay() {
        return mostUnderWay.get();
    }

    /** A whole answer, cut in the middle of events. */
    static Reply whole(JsonNode request) {
        StringBuilder events = new StringBuilder();
        int tokens = request.path("max_tokens").asInt();
        for (int i = 0; i < tokens; i++) {
            events.append("data: {\"choices\":[{\"index\":0,\"text\":\"ä\"}]}\n\n");
        }
        JsonNode prompt = request.path("prompt");
        int promptTokens = prompt.isArray() ? prompt.size() : prompt.asText().length();
        events.append("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":")
                .append(promptTokens)
                .append(",\"completion_tokens\":")
                .append(tokens)
                .append("}}\n\ndata: [DONE]\n\n");
        return new Reply(200, List.of(events.toString().split("(?<=\\G.{11})", -1)));
    }

    private void serve(HttpExchange exchange) throws IOException {
        JsonNode body = Json.MAPPER.readTree(exchange.getRequestBody());
        switch (exchange.getRequestURI().getPath()) {
            case "/v1/models" ->
                    answer(exchange, new Reply(200, List.of("{\"data\":[{\"id\":\"fake\"}]}")));
            case "/tokenize" -> answer(exchange, tokenize(body));
            case "/v1/completions" -> {
                mostUnderWay.accumulateAndGet(underWay.incrementAndGet(), Math::max);
                completions.add(body);
                Reply reply = script.apply(body);
                underWay.decrementAndGet();
                answer(exchange, reply);
            }
            default -> answer(exchange, new Reply(404, List.of("{}")));
        }
    }

    private Reply tokenize(JsonNode body) {
        if (!tokenizes) {
            return new Reply(404, List.of("not here"));
        }
        List<Integer> tokens = body.path("prompt").asText().chars().boxed().toList();
        return new Reply(200, List.of("{\"tokens\":" + tokens + "}"));
    }

    private static void answer(HttpExchange exchange, Reply reply) throws IOException {
        try (exchange;
                OutputStream out = exchange.getResponseBody()) {
            exchange.sendResponseHeaders(reply.status(), 0);
            for (String piece : reply.pieces()) {
                out.write(piece.getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        }
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
