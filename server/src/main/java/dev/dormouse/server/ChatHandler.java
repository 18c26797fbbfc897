package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.chat.ChatMessage;
import dev.dormouse.model.chat.ChatSettings;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** {@code POST /v1/chat/completions}: from messages, through the model's chat template. */
final class ChatHandler implements JobSource {
    private static final List<String> UNSUPPORTED =
            List.of("audio", "chat_template", "function_call", "functions", "mm_processor_kwargs");

    private final ModelText text;
    private final JobReader reader;

    ChatHandler(JobReader reader, ModelText text) {
        this.text = text;
        this.reader = reader;
    }

    @Override
    public Job job(RequestBody body, String requestId) {
        body.refuse(UNSUPPORTED);
        requireText(body);
        var _ = reader.choices(body, 1);
        List<ChatMessage> messages = ChatMessages.read(body);
        ToolFields tools = ToolFields.read(body, text.chatTemplate());
        boolean opens = body.flag("add_generation_prompt", true);
        String field =
                body.node("max_completion_tokens") != null ? "max_completion_tokens" : "max_tokens";
        MaxTokens maxTokens = new MaxTokens(field, body.integer(field));
        ChatMessage last = messages.getLast();
        String role = opens ? "assistant" : last.role();
        boolean echo = body.flag("echo", false) && last.role().equals(role);
        List<Integer> tokens =
                reader.prompt(
                        "messages",
                        text.tokenizer()
                                .encode(
                                        render(body, messages, tools),
                                        // The template writes the special tokens itself.
                                        body.flag("add_special_tokens", false),
                                        true),
                        reader.truncation(body, maxTokens));
        TokenSpelling spelling =
                new TokenSpelling(text.tokenizer(), body.flag("return_tokens_as_token_ids", false));
        return reader.read(
                body,
                new JobReader.Draft(
                        new ChatFormat(spelling, role, tools.maxCalls()),
                        "chatcmpl-",
                        false,
                        List.of(
                                new JobReader.Prompt(
                                        tokens,
                                        echo && last.content() != null ? last.content() : "")),
                        maxTokens,
                        logprobs(body),
                        false,
                        true),
                requestId);
    }

    /** Other kinds of output cannot be had. */
    private static void requireText(RequestBody body) {
        for (String modality : body.texts("modalities")) {
            if (!modality.equals("text")) {
                throw ApiException.badRequest("modalities", "modalities must be text only");
            }
        }
    }

    private static @Nullable Integer logprobs(RequestBody body) {
        int top = body.integer("top_logprobs", 0);
        if (!body.flag("logprobs", false)) {
            if (top != 0) {
                throw ApiException.badRequest(
                        "top_logprobs", "top_logprobs needs logprobs to be true");
            }
            return null;
        }
        if (top < 0 || top > JobReader.MAX_LOGPROBS) {
            throw ApiException.badRequest(
                    "top_logprobs",
                    "top_logprobs is "
                            + top
                            + ", but must be between 0 and "
                            + JobReader.MAX_LOGPROBS);
        }
        return top;
    }

    private String render(RequestBody body, List<ChatMessage> messages, ToolFields tools) {
        boolean opens = body.flag("add_generation_prompt", true);
        boolean continues = body.flag("continue_final_message", false);
        if (opens && continues) {
            throw ApiException.badRequest(
                    "continue_final_message",
                    "continue_final_message needs add_generation_prompt to be false");
        }
        try {
            return text.chatTemplate()
                    .render(messages, new ChatSettings(opens, continues, variables(body, tools)));
        } catch (ModelException e) {
            throw ApiException.badRequest(
                    "messages", "the chat template refuses the messages: " + e.getMessage());
        }
    }

    private Map<String, @Nullable Object> variables(RequestBody body, ToolFields tools) {
        Map<String, @Nullable Object> variables = new HashMap<>();
        @Nullable String effort = body.text("reasoning_effort");
        if (effort != null) {
            variables.put("reasoning_effort", effort);
            variables.put("enable_thinking", !effort.equals("none"));
        }
        ObjectNode given = body.object("chat_template_kwargs");
        if (given != null) {
            RequestBody.refuseIn(
                    given, "chat_template_kwargs", List.of("chat_template", "tokenize"));
            given.properties()
                    .forEach(
                            entry ->
                                    variables.put(
                                            entry.getKey(), RequestBody.plain(entry.getValue())));
        }
        JsonNode documents = body.list("documents");
        if (documents != null) {
            if (!text.chatTemplate().mentions("documents")) {
                throw ApiException.badRequest(
                        "documents", "the model's chat template makes nothing of documents");
            }
            variables.put("documents", RequestBody.plain(documents));
        }
        if (tools.declared() != null) {
            variables.put("tools", tools.declared());
        }
        return variables;
    }
}
