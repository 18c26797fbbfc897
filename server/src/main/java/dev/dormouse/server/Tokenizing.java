package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.List;

/** {@code POST /tokenize} and {@code POST /detokenize}, as in vLLM. Thread-safe. */
final class Tokenizing {
    private final EngineInfo info;
    private final Tokenizer tokenizer;
    private final JobReader reader;

    Tokenizing(EngineInfo info, JobReader reader, Tokenizer tokenizer) {
        this.info = info;
        this.tokenizer = tokenizer;
        this.reader = reader;
    }

    ObjectNode tokenize(byte[] bytes) {
        RequestBody body = RequestBody.parse(bytes);
        body.requireUnicode();
        String text = body.text("prompt");
        if (text == null) {
            throw ApiException.badRequest("prompt", "prompt is missing");
        }
        int[] tokens = tokenizer.encode(text, body.flag("add_special_tokens", true), true);
        ObjectNode answer = Answers.JSON.objectNode();
        answer.put("count", tokens.length);
        answer.put("max_model_len", info.maxModelLength());
        ArrayNode list = answer.putArray("tokens");
        for (int token : tokens) {
            list.add(token);
        }
        return answer;
    }

    ObjectNode detokenize(byte[] bytes) {
        List<Integer> tokens =
                reader.requireTokens("tokens", RequestBody.parse(bytes).integers("tokens"));
        String text = tokenizer.decode(tokens.stream().mapToInt(Integer::intValue).toArray());
        return Answers.JSON.objectNode().put("prompt", text);
    }
}
