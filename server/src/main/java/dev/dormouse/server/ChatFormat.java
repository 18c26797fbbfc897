package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.Candidate;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import java.util.List;
import java.util.UUID;

/**
 * Answers of {@code /v1/chat/completions}.
 *
 * @param role who speaks
 * @param maxToolCalls calls of tools that are looked for in the text; 0 leaves it as it is
 */
record ChatFormat(TokenSpelling spelling, String role, int maxToolCalls) implements AnswerFormat {
    @Override
    public String wholeName() {
        return "chat.completion";
    }

    @Override
    public String pieceName() {
        return "chat.completion.chunk";
    }

    @Override
    public Pieces pieces() {
        return maxToolCalls > 0 ? new ToolCallPieces(maxToolCalls) : Pieces.plain();
    }

    @Override
    public void putWhole(ObjectNode choice, List<Part> parts) {
        ObjectNode message = choice.putObject("message").put("role", role);
        String text = text(parts);
        boolean calls = parts.stream().anyMatch(Part.Call.class::isInstance);
        message.put("content", calls && text.isBlank() ? null : text);
        putCalls(message, parts, false);
    }

    @Override
    public void putPiece(ObjectNode choice, List<Part> parts) {
        ObjectNode delta = choice.putObject("delta");
        String text = text(parts);
        boolean calls = parts.stream().anyMatch(Part.Call.class::isInstance);
        if (!calls || !text.isEmpty()) {
            delta.put("content", text);
        }
        putCalls(delta, parts, true);
    }

    private static String text(List<Part> parts) {
        StringBuilder text = new StringBuilder();
        for (Part part : parts) {
            if (part instanceof Part.Text(String piece)) {
                text.append(piece);
            }
        }
        return text.toString();
    }

    private static void putCalls(ObjectNode message, List<Part> parts, boolean withIndex) {
        for (Part part : parts) {
            if (part instanceof Part.Call call) {
                ObjectNode json = message.withArray("/tool_calls").addObject();
                if (withIndex) {
                    json.put("index", call.index());
                }
                json.put("id", "chatcmpl-tool-" + UUID.randomUUID().toString().replace("-", ""));
                json.put("type", "function");
                json.putObject("function")
                        .put("name", call.name())
                        .put("arguments", call.arguments());
            }
        }
    }

    @Override
    public boolean opens() {
        return true;
    }

    @Override
    public void putOpening(ObjectNode choice) {
        choice.putObject("delta").put("role", role).put("content", "");
    }

    @Override
    public ObjectNode promptHome(ObjectNode answer, ObjectNode choice) {
        return answer;
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
        json.put("token", spelling.of(token)).put("logprob", TokenSpelling.finite(logprob));
        ArrayNode bytes = json.putArray("bytes");
        for (byte value : spelling.tokenizer().tokenBytes(token)) {
            bytes.add(Byte.toUnsignedInt(value));
        }
    }
}
