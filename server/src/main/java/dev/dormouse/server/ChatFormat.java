package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.List;

/** Answers of {@code /v1/chat/completions}. */
record ChatFormat(Tokenizer tokenizer) implements AnswerFormat {
    @Override
    public String wholeName() {
        return "chat.completion";
    }

    @Override
    public String pieceName() {
        return "chat.completion.chunk";
    }

    @Override
    public void putWhole(ObjectNode choice, String text) {
        choice.putObject("message").put("role", "assistant").put("content", text);
    }

    @Override
    public void putPiece(ObjectNode choice, String text) {
        choice.putObject("delta").put("content", text);
    }

    @Override
    public boolean opens() {
        return true;
    }

    @Override
    public void putOpening(ObjectNode choice) {
        choice.putObject("delta").put("role", "assistant").put("content", "");
    }

    @Override
    public void putLogprobs(ObjectNode choice, List<TokenLogprobs> logprobs, int offset) {
        ArrayNode content = choice.putObject("logprobs").putArray("content");
        for (TokenLogprobs entry : logprobs) {
            ObjectNode token = content.addObject();
            putToken(token, entry.tokenId(), entry.logprob());
            ArrayNode tops = token.putArray("top_logprobs");
            for (Candidate candidate : entry.top()) {
                putToken(tops.addObject(), candidate.tokenId(), candidate.logprob());
            }
        }
    }

    private void putToken(ObjectNode json, int token, float logprob) {
        json.put("token", TokenText.of(tokenizer, token)).put("logprob", logprob);
        ArrayNode bytes = json.putArray("bytes");
        for (byte value : tokenizer.tokenBytes(token)) {
            bytes.add(Byte.toUnsignedInt(value));
        }
    }
}
