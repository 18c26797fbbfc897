package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.List;

/** Answers of {@code /v1/completions}. */
record TextFormat(Tokenizer tokenizer) implements AnswerFormat {
    @Override
    public String wholeName() {
        return "text_completion";
    }

    @Override
    public String pieceName() {
        return "text_completion";
    }

    @Override
    public void putWhole(ObjectNode choice, String text) {
        choice.put("text", text);
    }

    @Override
    public void putPiece(ObjectNode choice, String text) {
        choice.put("text", text);
    }

    @Override
    public boolean opens() {
        return false;
    }

    @Override
    public void putOpening(ObjectNode choice) {
        choice.put("text", "");
    }

    @Override
    public void putLogprobs(ObjectNode choice, List<TokenLogprobs> logprobs, int offset) {
        ObjectNode json = choice.putObject("logprobs");
        ArrayNode tokens = json.putArray("tokens");
        ArrayNode values = json.putArray("token_logprobs");
        ArrayNode tops = json.putArray("top_logprobs");
        ArrayNode offsets = json.putArray("text_offset");
        int at = offset;
        for (TokenLogprobs entry : logprobs) {
            String token = TokenText.of(tokenizer, entry.tokenId());
            tokens.add(token);
            values.add(entry.logprob());
            ObjectNode top = tops.addObject();
            for (Candidate candidate : entry.top()) {
                top.put(TokenText.of(tokenizer, candidate.tokenId()), candidate.logprob());
            }
            offsets.add(at);
            at += token.length();
        }
    }
}
