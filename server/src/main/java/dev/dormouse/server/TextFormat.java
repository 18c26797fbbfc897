package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import java.util.List;

/** Answers of {@code /v1/completions}. */
record TextFormat(TokenSpelling spelling) implements AnswerFormat {
    @Override
    public String wholeName() {
        return "text_completion";
    }

    @Override
    public String pieceName() {
        return "text_completion";
    }

    @Override
    public Pieces pieces() {
        return Pieces.plain();
    }

    @Override
    public void putWhole(ObjectNode choice, List<Part> parts) {
        StringBuilder text = new StringBuilder();
        for (Part part : parts) {
            if (part instanceof Part.Text(String piece)) {
                text.append(piece);
            }
        }
        choice.put("text", text.toString());
    }

    @Override
    public void putPiece(ObjectNode choice, List<Part> parts) {
        putWhole(choice, parts);
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
    public ObjectNode promptHome(ObjectNode answer, ObjectNode choice) {
        return choice;
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
            String token = spelling.of(entry.tokenId());
            tokens.add(token);
            if (Float.isNaN(entry.logprob())) {
                values.addNull();
                tops.addNull();
            } else {
                values.add(TokenSpelling.finite(entry.logprob()));
                putTop(tops.addObject(), token, entry);
            }
            offsets.add(at);
            at += token.length();
        }
    }

    /** The chosen token stands among the likely ones even if it is none of them. */
    private void putTop(ObjectNode top, String token, TokenLogprobs entry) {
        top.put(token, TokenSpelling.finite(entry.logprob()));
        for (Candidate candidate : entry.top()) {
            top.put(spelling.of(candidate.tokenId()), TokenSpelling.finite(candidate.logprob()));
        }
    }
}
