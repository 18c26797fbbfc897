package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.http.ClientConnection;
import io.helidon.webserver.http.ServerResponse;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.InstantSource;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Runs a job and answers its client, at once or piece by piece. Thread-safe. */
final class JobRunner {
    private static final Logger LOGGER = System.getLogger("dormouse.server");

    private final Engine engine;
    private final ServerMetrics metrics;
    private final InstantSource clock;

    JobRunner(Engine engine, ServerMetrics metrics, InstantSource clock) {
        this.engine = engine;
        this.metrics = metrics;
        this.clock = clock;
    }

    void run(Job job, ServerResponse response) throws InterruptedException {
        try (Generation generation =
                        Generation.start(engine, job.requests(), ClientConnection.CURRENT.get());
                ServerMetrics.Timing timing = metrics.start(job.requests().size())) {
            if (job.stream()) {
                stream(job, generation, timing, response);
            } else {
                Answers.send(response, whole(job, generation, timing));
            }
        }
    }

    private static List<Choice> choices(Job job) {
        return IntStream.range(0, job.requests().size())
                .mapToObj(index -> new Choice(job, index))
                .toList();
    }

    private ObjectNode whole(Job job, Generation generation, ServerMetrics.Timing timing)
            throws InterruptedException {
        List<Choice> choices = choices(job);
        while (generation.isOpen()) {
            Generation.Arrival arrival = generation.next();
            Choice choice = choices.get(arrival.index());
            switch (arrival.event()) {
                case GenerationEvent.Prompt prompt -> choice.scored(prompt.tokens());
                case Tokens tokens -> {
                    timing.tokens(arrival.index(), tokens.tokenIds().size());
                    choice.gather(tokens);
                }
                case Finished finished -> choice.finish(finished);
                case GenerationEvent.Failed failed -> throw ApiException.of(failed);
            }
        }
        ObjectNode answer = head(job, job.format().wholeName());
        ArrayNode list = answer.putArray("choices");
        for (Choice choice : choices) {
            ObjectNode json = list.addObject();
            choice.putWhole(json);
            choice.putPromptReport(job.format().promptHome(answer, json));
            putTransferParams(answer, choice.finished().kvTransferParams());
        }
        answer.set("usage", Answers.usage(usage(job, choices)));
        return answer;
    }

    private void stream(
            Job job, Generation generation, ServerMetrics.Timing timing, ServerResponse response)
            throws InterruptedException {
        // A request that fails before its first token is answered with a status, not with a stream.
        Generation.Arrival arrival = generation.next();
        EventStream events = EventStream.open(response);
        try {
            List<Choice> choices = choices(job);
            for (Choice choice : job.format().opens() ? choices : List.<Choice>of()) {
                sendPiece(job, events, choice, choice.opening(), null);
            }
            write(job, choices.get(arrival.index()), arrival.event(), timing, events);
            while (generation.isOpen()) {
                arrival = generation.next();
                write(job, choices.get(arrival.index()), arrival.event(), timing, events);
            }
            if (job.usage() != StreamedUsage.NEVER) {
                ObjectNode last = head(job, job.format().pieceName());
                last.putArray("choices");
                last.set("usage", Answers.usage(usage(job, choices)));
                events.send(last);
            }
            events.done();
        } catch (ApiException e) {
            events.send(e.toJson());
            events.close();
        } catch (UncheckedIOException e) {
            LOGGER.log(Level.DEBUG, "client left: request={0} cause={1}", job.id(), e.getMessage());
        }
    }

    /** Sends what an event means for its choice. */
    private void write(
            Job job,
            Choice choice,
            GenerationEvent event,
            ServerMetrics.Timing timing,
            EventStream events) {
        switch (event) {
            case GenerationEvent.Prompt prompt -> choice.scored(prompt.tokens());
            case Tokens tokens -> {
                timing.tokens(choice.index(), tokens.tokenIds().size());
                for (ObjectNode piece : choice.written(tokens)) {
                    sendPiece(job, events, choice, piece, null);
                }
            }
            case Finished finished -> {
                for (ObjectNode piece : choice.written(finished)) {
                    sendPiece(job, events, choice, piece, finished.kvTransferParams());
                }
            }
            case GenerationEvent.Failed failed -> throw ApiException.of(failed);
        }
    }

    private void sendPiece(
            Job job,
            EventStream events,
            Choice choice,
            ObjectNode written,
            @Nullable KvTransferParams params) {
        ObjectNode piece = head(job, job.format().pieceName());
        piece.putArray("choices").add(written);
        choice.putPromptTokens(job.format().promptHome(piece, written));
        if (job.usage() == StreamedUsage.ALWAYS) {
            piece.set("usage", Answers.usage(choice.usageSoFar()));
        }
        putTransferParams(piece, params);
        events.send(piece);
    }

    private ObjectNode head(Job job, String name) {
        ObjectNode json = Answers.JSON.objectNode();
        json.put("id", job.id());
        json.put("object", name);
        json.put("created", clock.instant().getEpochSecond());
        json.put("model", engine.info().servedModelName());
        return json;
    }

    private static void putTransferParams(ObjectNode json, @Nullable KvTransferParams params) {
        if (params != null) {
            json.set("kv_transfer_params", params.toJson());
        }
    }

    /** The sum, in which a prompt counts once, as in OpenAI's API, however many choices it has. */
    private static Usage usage(Job job, List<Choice> choices) {
        int prompt = 0;
        int completion = 0;
        int cached = 0;
        for (Choice choice : choices) {
            Usage usage = choice.usage();
            completion += usage.completionTokens();
            if (job.isFirstOfPrompt(choice.index())) {
                prompt += usage.promptTokens();
                cached += usage.cachedTokens();
            }
        }
        return new Usage(prompt, completion, cached);
    }
}
