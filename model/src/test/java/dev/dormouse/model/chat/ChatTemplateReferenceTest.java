package dev.dormouse.model.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.ReferenceData;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Natives;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Renderings against those of Python's jinja2, set up as transformers sets it up. */
final class ChatTemplateReferenceTest {
    private static void check(ChatTemplate template, ReferenceData.Rendering expected) {
        List<ChatMessage> messages =
                expected.messages().stream()
                        .map(m -> new ChatMessage(m.role(), m.content()))
                        .toList();
        String name = expected.template() + " of " + messages;
        if (expected.error().isPresent()) {
            assertThatThrownBy(() -> template.render(messages, expected.addGenerationPrompt()))
                    .as(name)
                    .isInstanceOf(ChatTemplateException.class)
                    .hasMessageEndingWith(expected.error().get());
        } else {
            assertThat(template.render(messages, expected.addGenerationPrompt()))
                    .as(name)
                    .isEqualTo(expected.text().orElseThrow());
        }
    }

    @Test
    void rendersTheDefaultModelsTemplateAsPythonDoes() {
        try (GgufFile file = GgufFile.open(Natives.model())) {
            ChatTemplate template = ChatTemplate.of(file.metadata(), Tokenizer.of(file.metadata()));
            assertThat(template.isPresent()).isTrue();
            List<ReferenceData.Rendering> expected =
                    ReferenceData.renderings().stream()
                            .filter(r -> r.template().equals("default"))
                            .toList();
            assertThat(expected).hasSizeGreaterThan(10);
            expected.forEach(e -> check(template, e));
        }
    }

    @Test
    void rendersOtherTemplatesAsPythonDoes() {
        Map<String, String> templates = ReferenceData.templates();
        assertThat(templates).hasSizeGreaterThan(5);
        for (ReferenceData.Rendering expected : ReferenceData.renderings()) {
            if (!expected.template().equals("default")) {
                String source = Objects.requireNonNull(templates.get(expected.template()));
                check(ChatTemplate.of(source, "<|im_start|>", "<|im_end|>"), expected);
            }
        }
    }

    @Test
    void trimsWhiteSpaceAsPythonDoes() {
        List<ReferenceData.Layout> layouts = ReferenceData.layouts();
        assertThat(layouts).hasSizeGreaterThan(100);
        for (ReferenceData.Layout layout : layouts) {
            String text =
                    Renderer.render(
                            StatementParser.parse(layout.template()), Map.of("messages", true));
            assertThat(text).as(layout.template()).isEqualTo(layout.text());
        }
    }
}
