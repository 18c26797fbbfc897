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
 * escaping, and the variables {@code messages}, {@code add_generation_prompt}, {@code bos_token}
 * and {@code eos_token}. The contents of messages are never taken for template code. Immutable;
 * safe from any thread.
 */
public final class ChatTemplate {
    private static final String KEY = "tokenizer.chat_template";
    private static final int MAX_SOURCE_CHARS = 1 << 20;

    private final @Nullable List<Statement> statements;
    private final Map<String, Object> constants;

    private ChatTemplate(@Nullable List<Statement> statements, Map<String, Object> constants) {
        this.statements = statements;
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
        return new ChatTemplate(source == null ? null : parse(source), constants);
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
        return new ChatTemplate(
                parse(source), Map.of("bos_token", bosToken, "eos_token", eosToken));
    }

    /** Whether there is a template. */
    public boolean isPresent() {
        return statements != null;
    }

    /**
     * Writes a conversation.
     *
     * @param addGenerationPrompt whether to end with the opening of the assistant's turn
     * @throws ChatTemplateException when there is no template, the template fails or exceeds a
     *     limit, or it raises an error itself ({@link ChatTemplateException#isRaisedByTemplate()})
     */
    public String render(List<ChatMessage> messages, boolean addGenerationPrompt) {
        if (statements == null) {
            throw ChatTemplateException.failed(
                    "render chat template: the model has none; use the completions endpoint with a written prompt");
        }
        List<Object> values = new ArrayList<>();
        for (ChatMessage message : messages) {
            Map<Object, Object> fields = new LinkedHashMap<>();
            fields.put("role", message.role());
            fields.put("content", message.content());
            values.add(new PyDict(fields));
        }
        Map<String, Object> variables = new HashMap<>(constants);
        variables.put("messages", PyList.list(values));
        variables.put("add_generation_prompt", addGenerationPrompt);
        return Renderer.render(statements, variables);
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
