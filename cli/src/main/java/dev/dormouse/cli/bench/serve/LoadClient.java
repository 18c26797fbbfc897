package dev.dormouse.cli.bench.serve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Clients of one server of OpenAI's API: each streams one completion after the other. They take
 * little processor time, since they may share it with the server. Thread-safe.
 */
public final class LoadClient implements AutoCloseable {
    private static final Duration LIMIT = Duration.ofMinutes(10);
    private static final int MAX_REASON_CHARS = 300;

    private final URI base;
    private final String model;
    private final boolean ignoresEnd;
    private final HttpClient http;

    private LoadClient(URI base, String model, boolean ignoresEnd, HttpClient http) {
        this.base = base;
        this.model = model;
        this.ignoresEnd = ignoresEnd;
        this.http = http;
    }

    /**
     * Clients of a server, which is asked for its first model's name, and whether it knows {@code
     * ignore_eos}.
     *
     * @throws FleetException if it does not answer as such a server does
     */
    public static LoadClient of(URI base) {
        HttpClient http =
                HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .connectTimeout(Duration.ofSeconds(5))
                        .build();
        try {
            return of(base, http);
        } catch (RuntimeException e) {
            http.shutdownNow();
            throw e;
        }
    }

    private static LoadClient of(URI base, HttpClient http) {
        LoadClient asking = new LoadClient(base, "", true, http);
        String model = asking.json("/v1/models", null).path("data").path(0).path("id").asText();
        LoadClient ignoring = new LoadClient(base, model, true, http);
        JsonNode prompt = Json.MAPPER.getNodeFactory().textNode("The dormouse");
        if (ignoring.complete(prompt, 2) instanceof Answer.Served) {
            return ignoring;
        }
        LoadClient plain = new LoadClient(base, model, false, http);
        if (plain.complete(prompt, 2) instanceof Answer.Failed(String reason)) {
            throw new FleetException(base + " does not serve completions: " + reason);
        }
        return plain;
    }

    /** The model that is asked. */
    String model() {
        return model;
    }

    /** Whether outputs are as long as was asked for, whatever the model says. */
    boolean ignoresEnd() {
        return ignoresEnd;
    }

    /**
     * What many requests gave.
     *
     * @param answers in the order of their prompts
     * @param nanos from the first request until the last answer
     */
    public record Load(List<Answer> answers, long nanos) {}

    /**
     * Sends all prompts, {@code concurrency} at a time.
     *
     * @param outputTokens of each answer
     */
    public Load run(List<JsonNode> prompts, int outputTokens, int concurrency) {
        List<byte[]> bodies = prompts.stream().map(prompt -> body(prompt, outputTokens)).toList();
        Answer[] answers = new Answer[prompts.size()];
        AtomicInteger next = new AtomicInteger();
        long startNanos = System.nanoTime();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            Runnable client =
                    () -> {
                        int index = next.getAndIncrement();
                        while (index < answers.length) {
                            answers[index] = send(bodies.get(index));
                            index = next.getAndIncrement();
                        }
                    };
            Stream.generate(() -> threads.submit(client))
                    .limit(Math.min(concurrency, answers.length))
                    .toList()
                    .forEach(LoadClient::await);
        }
        return new Load(List.of(answers), System.nanoTime() - startNanos);
    }

    /** One request. */
    public Answer complete(JsonNode prompt, int outputTokens) {
        return send(body(prompt, outputTokens));
    }

    /** Posts JSON, or gets without one; any answer but 200 is an exception. */
    JsonNode json(String path, @Nullable JsonNode body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(base.resolve(path)).timeout(LIMIT);
        if (body != null) {
            request.header("Content-Type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(body.toString()));
        }
        try {
            HttpResponse<String> response =
                    http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new FleetException(
                        base.resolve(path)
                                + " answered "
                                + response.statusCode()
                                + ": "
                                + excerpt(response.body()));
            }
            return Json.parse(response.body());
        } catch (IOException e) {
            throw new FleetException(base.resolve(path) + " did not answer: " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }

    private byte[] body(JsonNode prompt, int outputTokens) {
        ObjectNode body = Json.MAPPER.createObjectNode().put("model", model);
        body.set("prompt", prompt);
        body.put("max_tokens", outputTokens).put("temperature", 0).put("stream", true);
        body.putObject("stream_options").put("include_usage", true);
        if (ignoresEnd) {
            body.put("ignore_eos", true);
        }
        return body.toString().getBytes(StandardCharsets.UTF_8);
    }

    private Answer send(byte[] body) {
        HttpRequest request =
                HttpRequest.newBuilder(base.resolve("/v1/completions"))
                        .timeout(LIMIT)
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                        .build();
        long sentNanos = System.nanoTime();
        try {
            HttpResponse<InputStream> response =
                    http.send(request, HttpResponse.BodyHandlers.ofInputStream());
            try (InputStream in = response.body()) {
                if (response.statusCode() != 200) {
                    return new Answer.Failed(
                            response.statusCode()
                                    + ": "
                                    + excerpt(
                                            new String(
                                                    in.readNBytes(MAX_REASON_CHARS + 1),
                                                    StandardCharsets.UTF_8)));
                }
                return read(in, sentNanos);
            }
        } catch (IOException e) {
            return new Answer.Failed(e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return new Answer.Failed("interrupted");
        }
    }

    private static Answer read(InputStream in, long sentNanos) throws IOException {
        AnswerStream stream = new AnswerStream(sentNanos);
        byte[] buffer = new byte[8 << 10];
        for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
            stream.accept(buffer, count, System.nanoTime());
        }
        return stream.end();
    }

    private static String excerpt(String text) {
        return text.length() <= MAX_REASON_CHARS
                ? text.strip()
                : text.substring(0, MAX_REASON_CHARS).strip() + "…";
    }

    private static void await(Future<?> client) {
        try {
            client.get();
        } catch (ExecutionException e) {
            throw new FleetException("a client failed: " + e.getCause(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }

    /** Ends what is under way. */
    @Override
    public void close() {
        http.shutdownNow();
    }
}
