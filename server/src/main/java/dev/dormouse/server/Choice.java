package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.Finished;
import dev.dormouse.engine.GenerationEvent.PromptToken;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.engine.GenerationEvent.Tokens;
import dev.dormouse.engine.GenerationEvent.Usage;
import dev.dormouse.engine.StopReason;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One choice of an answer while it is generated: gathered for a whole answer, or written piece by
 * piece.
 */
final class Choice {
    private final Job job;
    private final int index;
    private final Job.PromptReport prompt;
    private final Pieces pieces;
    private final List<Part> parts = new ArrayList<>();
    private final List<Integer> tokenIds = new ArrayList<>();
    private final List<TokenLogprobs> logprobs = new ArrayList<>();
    private List<PromptToken> scores = List.of();
    private int generated;
    private int writtenLength;
    private boolean called;
    private boolean begun;
    private boolean promptTokensTold;
    private @Nullable Finished finished;

    Choice(Job job, int index) {
        this.job = job;
        this.index = index;
        this.prompt = job.prompt(index);
        this.pieces = job.format().pieces();
    }

    int index() {
        return index;
    }

    /** What the prompt's tokens scored. */
    void scored(List<PromptToken> tokens) {
        scores = tokens;
    }

    /** Gathers output for a whole answer. */
    void gather(Tokens tokens) {
        count(tokens);
        if (job.generates()) {
            parts.addAll(split(pieces.push(tokens.text())));
            tokenIds.addAll(tokens.tokenIds());
            logprobs.addAll(tokens.logprobs());
        }
    }

    void finish(Finished end) {
        finished = end;
    }

    Finished finished() {
        return Objects.requireNonNull(finished, "finished");
    }

    /** Token counts at the end; a token that is not told does not count. */
    Usage usage() {
        Usage all = finished().usage();
        return job.generates() ? all : new Usage(all.promptTokens(), 0, all.cachedTokens());
    }

    /** Token counts so far. */
    Usage usageSoFar() {
        return new Usage(job.requests().get(index).promptTokens().size(), generated, 0);
    }

    /** The whole choice. */
    void putWhole(ObjectNode json) {
        json.put("index", index);
        List<Part> all = new ArrayList<>(List.of(new Part.Text(prompt.echo())));
        all.addAll(parts);
        all.addAll(split(pieces.finish()));
        job.format().putWhole(json, all);
        List<TokenLogprobs> told = new ArrayList<>(echoedLogprobs());
        told.addAll(logprobs);
        putLogprobs(json, told, 0);
        putTokenIds(json, tokenIds);
        putFinish(json);
    }

    /** What the first event of a stream says, before there is text. */
    ObjectNode opening() {
        ObjectNode json = piece();
        job.format().putOpening(json);
        json.putNull("finish_reason");
        return json;
    }

    /** The pieces that new tokens make. */
    List<ObjectNode> written(Tokens tokens) {
        List<ObjectNode> written = begin();
        count(tokens);
        if (job.generates()) {
            ObjectNode json = piece();
            List<Part> made = split(pieces.push(tokens.text()));
            job.format().putPiece(json, made);
            putLogprobs(json, tokens.logprobs(), writtenLength);
            writtenLength += tokens.text().length();
            putTokenIds(json, tokens.tokenIds());
            json.putNull("finish_reason");
            written.add(json);
        }
        return written;
    }

    /** The last pieces. */
    List<ObjectNode> written(Finished end) {
        List<ObjectNode> written = begin();
        finish(end);
        ObjectNode json = piece();
        job.format().putPiece(json, split(pieces.finish()));
        json.putNull("logprobs");
        putFinish(json);
        written.add(json);
        return written;
    }

    /** The echo, if there is one and it has not been written. */
    private List<ObjectNode> begin() {
        List<ObjectNode> written = new ArrayList<>();
        if (!begun && (!prompt.echo().isEmpty() || prompt.echoedTop() != null)) {
            ObjectNode json = piece();
            job.format().putPiece(json, List.of(new Part.Text(prompt.echo())));
            putLogprobs(json, echoedLogprobs(), 0);
            writtenLength = prompt.echo().length();
            putTokenIds(json, List.of());
            json.putNull("finish_reason");
            written.add(json);
        }
        begun = true;
        return written;
    }

    private ObjectNode piece() {
        return Answers.JSON.objectNode().put("index", index);
    }

    private void count(Tokens tokens) {
        generated += job.generates() ? tokens.tokenIds().size() : 0;
    }

    private List<Part> split(List<Part> made) {
        called |= made.stream().anyMatch(Part.Call.class::isInstance);
        return made;
    }

    /** The prompt's log probabilities as if they were the output's. */
    private List<TokenLogprobs> echoedLogprobs() {
        @Nullable Integer top = prompt.echoedTop();
        if (top == null) {
            return List.of();
        }
        List<TokenLogprobs> echoed = new ArrayList<>();
        int first = job.requests().get(index).promptTokens().getFirst();
        echoed.add(new TokenLogprobs(first, Float.NaN, List.of()));
        scores.forEach(score -> echoed.add(limited(score.logprobs(), top)));
        return echoed;
    }

    private static TokenLogprobs limited(TokenLogprobs logprobs, int top) {
        return logprobs.top().size() <= top
                ? logprobs
                : new TokenLogprobs(
                        logprobs.tokenId(), logprobs.logprob(), logprobs.top().subList(0, top));
    }

    /** What was asked of the prompt itself. */
    void putPromptReport(ObjectNode home) {
        @Nullable Integer top = prompt.top();
        if (top != null) {
            PromptLogprobs.put(home, scores, top, job.format().spelling());
        }
        putPromptTokens(home);
    }

    /** The prompt's tokens, once. */
    void putPromptTokens(ObjectNode home) {
        if (job.returnTokenIds() && !promptTokensTold) {
            promptTokensTold = true;
            ArrayNode ids = home.putArray("prompt_token_ids");
            job.requests().get(index).promptTokens().forEach(ids::add);
        }
    }

    private void putTokenIds(ObjectNode json, List<Integer> ids) {
        if (job.returnTokenIds()) {
            ArrayNode array = json.putArray("token_ids");
            ids.forEach(array::add);
        }
    }

    private void putLogprobs(ObjectNode json, List<TokenLogprobs> told, int offset) {
        if (told.isEmpty()) {
            json.putNull("logprobs");
        } else {
            job.format().putLogprobs(json, told, offset);
        }
    }

    private void putFinish(ObjectNode json) {
        FinishReason reason = job.generates() ? finished().reason() : FinishReason.LENGTH;
        boolean calls = called && reason == FinishReason.STOP;
        json.put("finish_reason", calls ? "tool_calls" : reason.wireName());
        switch (job.generates() ? finished().stopReason() : null) {
            case null -> json.putNull("stop_reason");
            case StopReason.Text(String stop) -> json.put("stop_reason", stop);
            case StopReason.Token(int tokenId) -> json.put("stop_reason", tokenId);
        }
    }
}
