package dev.dormouse.model.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.model.tokenizer.TokenizerTest;
import dev.dormouse.testkit.Seeded;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ChatTemplateTest {
    private static final List<ChatMessage> HELLO = List.of(new ChatMessage("user", "Hello"));

    @TempDir Path directory;

    private static String render(String template) {
        return ChatTemplate.of(template, "<s>", "</s>").render(HELLO, true);
    }

    private GgufFile file(String... template) {
        var writer = TokenizerTest.smallVocabulary();
        for (String source : template) {
            writer.string("tokenizer.chat_template", source);
        }
        return GgufFile.open(writer.write(directory.resolve("chat.gguf")));
    }

    @Test
    void passesTheSpellingOfTheFilesOwnTokens() {
        try (GgufFile file = file("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")) {
            ChatTemplate template = ChatTemplate.of(file.metadata(), Tokenizer.of(file.metadata()));
            assertThat(template.render(HELLO, false)).isEqualTo("<bos>Hello<eos>");
        }
    }

    @Test
    void saysAtUseThatThereIsNoTemplate() {
        try (GgufFile file = file()) {
            ChatTemplate template = ChatTemplate.of(file.metadata(), Tokenizer.of(file.metadata()));
            assertThat(template.isPresent()).isFalse();
            assertThatThrownBy(() -> template.render(HELLO, true))
                    .isInstanceOf(ChatTemplateException.class)
                    .hasMessageContaining("the model has none");
        }
    }

    @Test
    void tellsARefusalByTheTemplateFromAFailureOfIt() {
        assertThatThrownBy(() -> render("{{ raise_exception('Only two roles') }}"))
                .isInstanceOfSatisfying(
                        ChatTemplateException.class,
                        e -> {
                            assertThat(e).hasMessage("Only two roles");
                            assertThat(e.isRaisedByTemplate()).isTrue();
                        });
        assertThatThrownBy(() -> render("{{ 1 + 'a' }}"))
                .isInstanceOfSatisfying(
                        ChatTemplateException.class,
                        e -> assertThat(e.isRaisedByTemplate()).isFalse());
    }

    static Stream<Arguments> wrongTemplates() {
        return Stream.of(
                Arguments.of("{% for m in messages %}x", "line 1: a block is not closed"),
                Arguments.of("{{ 'open }}", "a string is not closed"),
                Arguments.of("{{ (1 }}", "unexpected '}'"),
                Arguments.of("{# never", "a comment is not closed"),
                Arguments.of("{% raw %}{{", "a raw block is not closed"),
                Arguments.of("{% include 'x' %}", "tag 'include' is not supported"),
                Arguments.of("{% import 'os' as os %}", "tag 'import' is not supported"),
                Arguments.of("{% endif %}", "tag 'endif' is not supported"),
                Arguments.of("{% break %}", "outside of a loop"),
                Arguments.of("{{ 1 | frobnicate }}", "'frobnicate' is no supported filter"),
                Arguments.of("{{ 1 is frob }}", "'frob' is no supported test"),
                Arguments.of("{{ nope() }}", "'nope' is undefined"),
                Arguments.of("{{ 'a'.zfill(3) }}", "'str object' has no attribute 'zfill'"),
                Arguments.of("{{ messages.append(1) }}", "'list object' has no attribute 'append'"),
                Arguments.of(
                        "{{ ''.__class__.__mro__ }}", "'str object' has no attribute '__class__'"),
                Arguments.of("{{ 1 // 0 }}", "by zero"),
                Arguments.of("{{ 9223372036854775807 + 1 }}", "overflow"),
                Arguments.of("{{ 99999999999999999999 }}", "exceeds 64 bits"),
                Arguments.of("{{ '\\ud8' }}", "bad escape"),
                Arguments.of("{% set x.y = 1 %}", "'x' is no namespace"),
                Arguments.of(
                        "{% for a, b in [[1]] %}{% endfor %}",
                        "1 values do not unpack into 2 names"),
                Arguments.of("{{ range(0, 1, 0) }}", "step other than 0"),
                Arguments.of(
                        "{{ 'a' | tojson(sort_keys=true) }}",
                        "does not support the argument 'sort_keys'"),
                Arguments.of("{{ {[1]: 2} }}", "is no key for a dict"));
    }

    @ParameterizedTest
    @MethodSource("wrongTemplates")
    void namesWhatIsWrong(String template, String message) {
        assertThatThrownBy(() -> render(template))
                .isInstanceOf(ChatTemplateException.class)
                .hasMessageContaining(message);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                // A text that doubles 64 times.
                "{% set n = namespace(s='x') %}{% for i in range(64) %}"
                        + "{% set n.s = n.s + n.s %}{% endfor %}",
                "{{ 'x' * 9000000000 }}",
                "{% set n = namespace(l=[1]) %}{% for i in range(64) %}"
                        + "{% set n.l = n.l + n.l %}{% endfor %}",
                // 10^15 rounds.
                "{% for a in range(100000) %}{% for b in range(100000) %}"
                        + "{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}",
                "{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
                // A small graph with 2^40 paths through it.
                "{% set n = namespace(l=['x']) %}{% for i in range(40) %}"
                        + "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
                "{% set n = namespace(l=['x'], m=['x']) %}{% for i in range(40) %}"
                        + "{% set n.l = [n.l, n.l] %}{% set n.m = [n.m, n.m] %}{% endfor %}"
                        + "{{ n.l == n.m }}",
                "{% set n = namespace(l=['x']) %}{% for i in range(40) %}"
                        + "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | tojson(indent=64) }}",
                "{{ range(100001) }}",
                "{{ 'x'.join(range(90000)) | replace('x', 'y' * 100000) }}",
                // Depth.
                "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
                "{% set n = namespace(l=[]) %}{% for i in range(1000) %}"
                        + "{% set n.l = [n.l] %}{% endfor %}{{ n.l }}",
                "{% set n = namespace(l={}) %}{% for i in range(1000) %}"
                        + "{% set n.l = {'k': n.l} %}{% endfor %}{{ n.l }}",
                "{% set n = namespace() %}{% set n.n = n %}{{ n }}",
            })
    void stopsWhatWouldNotEnd(String template) {
        assertThatThrownBy(() -> render(template)).isInstanceOf(ChatTemplateException.class);
    }

    @Test
    void countsUpToTheEndsOfAnInt() {
        assertThat(render("{{ range(9223372036854775800, 9223372036854775807, 5) | list }}"))
                .isEqualTo("[9223372036854775800, 9223372036854775805]");
        assertThat(render("{{ [2.5, 2, 9007199254740993, 9007199254740992.0] | sort }}"))
                .isEqualTo("[2, 2.5, 9007199254740992.0, 9007199254740993]");
    }

    @Test
    void refusesDeepNestingWhileParsing() {
        Map<String, String> closers =
                Map.of("(", ")", "[", "]", "{1: ", "}", "- ", "", "not ", "", "a if b else ", "");
        closers.forEach(
                (open, close) -> {
                    String deep = "{{ " + open.repeat(50_000) + "1" + close.repeat(50_000) + " }}";
                    assertThatThrownBy(() -> render(deep))
                            .as(open)
                            .isInstanceOf(ChatTemplateException.class)
                            .hasMessageContaining("nested deeper");
                });
        assertThatThrownBy(() -> render("{% if 1 %}".repeat(50_000)))
                .isInstanceOf(ChatTemplateException.class)
                .hasMessageContaining("nested deeper");
        for (String part : List.of(" + 1", " | abs", ".a", " and 1")) {
            String wide = "{{ 1" + part.repeat(50_000) + " }}";
            assertThatThrownBy(() -> render(wide).length())
                    .as(part)
                    .isInstanceOf(ChatTemplateException.class);
        }
    }

    /** Random token soup: an answer or the declared failure, and nothing else. */
    @Test
    void survivesRandomTemplates() {
        List<String> pieces =
                List.of(
                        "{{",
                        "}}",
                        "{%",
                        "%}",
                        "{#",
                        "#}",
                        "-",
                        "+",
                        " if ",
                        " else ",
                        " for ",
                        " in ",
                        " endfor ",
                        " endif ",
                        " set ",
                        " macro ",
                        "x",
                        "messages",
                        "(",
                        ")",
                        "[",
                        "]",
                        ":",
                        ",",
                        ".",
                        "|",
                        "'a'",
                        "\"",
                        "1",
                        "2.5",
                        "=",
                        "==",
                        "<",
                        " is ",
                        " not ",
                        "~",
                        "*",
                        "**",
                        "//",
                        "%",
                        "\n",
                        "  ",
                        "loop",
                        "namespace",
                        "join",
                        "tojson",
                        "map",
                        "{",
                        "}",
                        "\\",
                        "none",
                        "é");
        Seeded.forAll(
                3_000,
                random -> {
                    StringBuilder template = new StringBuilder();
                    boolean inTag = random.nextBoolean();
                    template.append(inTag ? "{{" : "");
                    int count = random.nextInt(1, 12);
                    for (int i = 0; i < count; i++) {
                        template.append(pick(pieces, random)).append(inTag ? " " : "");
                    }
                    template.append(inTag ? "}}" : "");
                    try {
                        render(template.toString());
                    } catch (ChatTemplateException e) {
                        assertThat(e.getMessage()).isNotEmpty();
                    }
                });
    }

    private static String pick(List<String> pieces, SplittableRandom random) {
        return pieces.get(random.nextInt(pieces.size()));
    }
}
