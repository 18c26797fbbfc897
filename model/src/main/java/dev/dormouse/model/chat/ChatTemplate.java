package dev.dormouse.model.chat;

import dev.dormouse.model.gguf.GgufMetadata;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * A model's rule for writing a conversation as text.
 *
 * <p>It renders as {@code apply_chat_template} of Python's transformers does: blocks trimmed, no
 * escaping, and the variables {@code messages}, {@code tools}, {@code documents}, {@code
 * add_generation_prompt}, {@code bos_token} and {@code eos_token}. The contents of messages are
 * never taken for template code. Immutable; safe from any thread.
 */
public final class ChatTemplate {
    private static final String KEY = "tokenizer.chat_template";
    private static final int MAX_SOURCE_CHARS = 1 << 20;

    private final String source;
    private final @Nullable List<Statement> statements;
    private final Map<String, Object> constants;

    private ChatTemplate(@Nullable String source, Map<String, Object> constants) {
        this.source = source == null ? "" : source;
        this.statements = source == null ? null : parse(source);
        this.constants = constants;
    }

    /**
     * The template that a GGUF file brings, perhaps none: see {@link #of(String, Tokenizer)}.
     *
     * @param tokenizer of the same file; it spells the BOS and EOS tokens
     * @throws ChatTemplateException when the template cannot be parsed or uses what is not
     *     supported
     */
    public static ChatTemplate of(GgufMetadata metadata, Tokenizer tokenizer) {
        return of(metadata.findString(KEY).orElse(null), tokenizer);
    }

    /**
     * A template from its source, or an object that says that there is none when it is used, since
     * such a model still completes plain text.
     *
     * @param tokenizer of the same model; it spells the BOS and EOS tokens
     * @throws ChatTemplateException when the template cannot be parsed or uses what is not
     *     supported
     */
    public static ChatTemplate of(@Nullable String source, Tokenizer tokenizer) {
        Map<String, Object> constants = new HashMap<>();
        spell(tokenizer, tokenizer.bos()).ifPresent(s -> constants.put("bos_token", s));
        spell(tokenizer, tokenizer.eos()).ifPresent(s -> constants.put("eos_token", s));
        return new ChatTemplate(source, constants);
    }

    /**
     * A template from its source.
     *
     * @param bosToken the spelling of the token that begins a text
     * @param eosToken the spelling of the token that ends a text
     * @throws ChatTemplateException when the template cannot be parsed or uses what is not
     *     supported
     */
    public static ChatTemplate of(String source, String bosToken, String eosToken) {
        return new ChatTemplate(source, Map.of("bos_token", bosToken, "eos_token", eosToken));
    }

    /** Whether there is a template. */
    public boolean isPresent() {
        return statements != null;
    }

    /**
     * Whether the template's source has that text somewhere: one that does not name a variable
     * makes nothing of it.
     */
    public boolean mentions(String text) {
        return source.contains(text);
    }

    /** As {@link #render(List, ChatSettings)}, without further variables. */
    public String render(List<ChatMessage> messages, boolean addGenerationPrompt) {
        return render(messages, new ChatSettings(addGenerationPrompt, false, Map.of()));
    }

    /**
     * Writes a conversation.
     *
     * @throws ChatTemplateException when there is no template, the template fails or exceeds a
     *     limit, it raises an error itself ({@link ChatTemplateException#isRaisedByTemplate()}), or
     *     it leaves out the message that shall be continued
     */
    public String render(List<ChatMessage> messages, ChatSettings settings) {
        if (statements == null) {
            throw ChatTemplateException.failed(
                    "render chat template: the model has none; use the completions endpoint with a written prompt");
        }
        List<Object> values = new ArrayList<>();
        for (ChatMessage message : messages) {
            Map<Object, Object> fields = new LinkedHashMap<>();
            fields.put("role", message.role());
            fields.put("content", PyValues.of(message.content()));
            message.fields().forEach((name, value) -> fields.put(name, PyValues.of(value)));
            values.add(new PyDict(fields));
        }
        Map<String, Object> variables = new HashMap<>(constants);
        variables.put("tools", PyNone.NONE);
        variables.put("documents", PyNone.NONE);
        settings.variables().forEach((name, value) -> variables.put(name, PyValues.of(value)));
        variables.put("messages", PyList.list(values));
        variables.put("add_generation_prompt", settings.addGenerationPrompt());
        String rendered = Renderer.render(statements, variables);
        return settings.continueFinalMessage() ? upToLast(messages, rendered) : rendered;
    }

    /** The text up to the end of the last message's content; its own trailing space may be gone. */
    private static String upToLast(List<ChatMessage> messages, String rendered) {
        @Nullable String content = messages.isEmpty() ? null : messages.getLast().content();
        int at = content == null ? -1 : rendered.lastIndexOf(content.strip());
        if (content == null || at < 0) {
            throw ChatTemplateException.failed(
                    "render chat template: it does not write the last message, so that cannot be continued");
        }
        String whole = content.stripLeading();
        return rendered.substring(0, at)
                + (rendered.startsWith(whole, at) ? whole : content.strip());
    }

    private static List<Statement> parse(String source) {
        if (source.length() > MAX_SOURCE_CHARS) {
            throw ChatTemplateException.failed(
                    "parse chat template: it has %d characters, the limit is %d"
                            .formatted(source.length(), MAX_SOURCE_CHARS));
        }
        return StatementParser.parse(source);
    }

    private static Optional<String> spell(Tokenizer tokenizer, OptionalInt token) {
        return token.isPresent()
                ? Optional.of(
                        new String(tokenizer.tokenBytes(token.getAsInt()), StandardCharsets.UTF_8))
                : Optional.empty();
    }
}
