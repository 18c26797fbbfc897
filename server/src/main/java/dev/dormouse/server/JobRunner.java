package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.engine.StopReason;
import dev.dormouse.http.ClientConnection;
import io.helidon.webserver.http.ServerResponse;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
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

    /** One choice while it is collected. */
    private static final class Choice {
        private final StringBuilder text = new StringBuilder();
        private final List<Integer> tokenIds = new ArrayList<>();
        private final List<TokenLogprobs> logprobs = new ArrayList<>();
        private @Nullable Finished finished;

        void add(Tokens tokens) {
            text.append(tokens.text());
            tokenIds.addAll(tokens.tokenIds());
            logprobs.addAll(tokens.logprobs());
        }
    }

    private ObjectNode whole(Job job, Generation generation, ServerMetrics.Timing timing)
            throws InterruptedException {
        List<Choice> choices = new ArrayList<>();
        job.requests().forEach(request -> choices.add(new Choice()));
        while (generation.isOpen()) {
            Generation.Arrival arrival = generation.next();
            Choice choice = choices.get(arrival.index());
            switch (arrival.event()) {
                case Tokens tokens -> {
                    timing.tokens(arrival.index(), tokens.tokenIds().size());
                    choice.add(tokens);
                }
                case Finished finished -> choice.finished = finished;
                case GenerationEvent.Failed failed -> throw ApiException.of(failed);
            }
        }
        ObjectNode answer = head(job, job.format().wholeName());
        ArrayNode list = answer.putArray("choices");
        Usage usage = new Usage(0, 0, 0);
        for (int i = 0; i < choices.size(); i++) {
            Choice choice = choices.get(i);
            Finished finished = java.util.Objects.requireNonNull(choice.finished);
            list.add(wholeChoice(job, i, choice, finished));
            usage = plus(usage, finished.usage(), job.isFirstOfPrompt(i));
            putTransferParams(answer, finished.kvTransferParams());
        }
        answer.set("usage", Answers.usage(usage));
        return answer;
    }

    private static ObjectNode wholeChoice(Job job, int index, Choice choice, Finished finished) {
        ObjectNode json = Answers.JSON.objectNode();
        json.put("index", index);
        job.format().putWhole(json, choice.text.toString());
        putLogprobs(job, json, choice.logprobs, 0);
        putTokenIds(job, json, choice.tokenIds);
        putFinish(json, finished);
        return json;
    }

    private void stream(
            Job job, Generation generation, ServerMetrics.Timing timing, ServerResponse response)
            throws InterruptedException {
        // A request that fails before its first token is answered with a status, not with a stream.
        Generation.Arrival first = generation.next();
        EventStream events = EventStream.open(response);
        try {
            openChoices(job, events);
            int[] offsets = new int[job.requests().size()];
            Usage usage = streamEvent(job, first, offsets, timing, events, new Usage(0, 0, 0));
            while (generation.isOpen()) {
                usage = streamEvent(job, generation.next(), offsets, timing, events, usage);
            }
            if (job.includeUsage()) {
                ObjectNode last = head(job, job.format().pieceName());
                last.putArray("choices");
                last.set("usage", Answers.usage(usage));
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

    private void openChoices(Job job, EventStream events) {
        for (int i = 0; job.format().opens() && i < job.requests().size(); i++) {
            ObjectNode choice = Answers.JSON.objectNode();
            choice.put("index", i);
            job.format().putOpening(choice);
            choice.putNull("finish_reason");
            sendPiece(job, events, choice, null);
        }
    }

    /** Sends what an event means for its choice; answers the usage with what it adds. */
    private Usage streamEvent(
            Job job,
            Generation.Arrival arrival,
            int[] offsets,
            ServerMetrics.Timing timing,
            EventStream events,
            Usage usage) {
        ObjectNode choice = Answers.JSON.objectNode();
        choice.put("index", arrival.index());
        return switch (arrival.event()) {
            case Tokens tokens -> {
                timing.tokens(arrival.index(), tokens.tokenIds().size());
                job.format().putPiece(choice, tokens.text());
                putLogprobs(job, choice, tokens.logprobs(), offsets[arrival.index()]);
                offsets[arrival.index()] += tokens.text().length();
                putTokenIds(job, choice, tokens.tokenIds());
                choice.putNull("finish_reason");
                sendPiece(job, events, choice, null);
                yield usage;
            }
            case Finished finished -> {
                job.format().putPiece(choice, "");
                choice.putNull("logprobs");
                putFinish(choice, finished);
                sendPiece(job, events, choice, finished.kvTransferParams());
                yield plus(usage, finished.usage(), job.isFirstOfPrompt(arrival.index()));
            }
            case GenerationEvent.Failed failed -> throw ApiException.of(failed);
        };
    }

    private void sendPiece(
            Job job, EventStream events, ObjectNode choice, @Nullable KvTransferParams params) {
        ObjectNode piece = head(job, job.format().pieceName());
        piece.putArray("choices").add(choice);
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

    private static void putFinish(ObjectNode choice, Finished finished) {
        choice.put("finish_reason", finished.reason().wireName());
        switch (finished.stopReason()) {
            case null -> choice.putNull("stop_reason");
            case StopReason.Text(String stop) -> choice.put("stop_reason", stop);
            case StopReason.Token(int tokenId) -> choice.put("stop_reason", tokenId);
        }
    }

    private static void putTransferParams(ObjectNode json, @Nullable KvTransferParams params) {
        if (params != null) {
            json.set("kv_transfer_params", params.toJson());
        }
    }

    private static void putTokenIds(Job job, ObjectNode choice, List<Integer> tokenIds) {
        if (job.returnTokenIds()) {
            ArrayNode ids = choice.putArray("token_ids");
            tokenIds.forEach(ids::add);
        }
    }

    private static void putLogprobs(
            Job job, ObjectNode choice, List<TokenLogprobs> logprobs, int offset) {
        if (logprobs.isEmpty()) {
            choice.putNull("logprobs");
        } else {
            job.format().putLogprobs(choice, logprobs, offset);
        }
    }

    /** The sum, in which a prompt counts once, as in OpenAI's API, however many choices it has. */
    private static Usage plus(Usage sum, Usage choice, boolean firstOfPrompt) {
        return new Usage(
                sum.promptTokens() + (firstOfPrompt ? choice.promptTokens() : 0),
                sum.completionTokens() + choice.completionTokens(),
                sum.cachedTokens() + (firstOfPrompt ? choice.cachedTokens() : 0));
    }
}
