package dev.dormouse.model.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class OnigurumaPatternTest {
    @Test
    void whiteSpaceDigitsAndCaseAreUnicodes() {
        assertThat(matches("\\s\\S", "\u3000x")).isTrue();
        assertThat(matches("[^\\s]", "\u0085")).isFalse();
        assertThat(matches("\\d\\D", "\u0664x")).isTrue();
        assertThat(matches("(?i:'s)|x", "'\u017f")).isTrue();
        assertThat(matches("(?i:'s)|x", "X")).isFalse();
        assertThat(matches("[\\r\\n\\p{Lu}]{1,3}", "\nA\r")).isTrue();
        assertThat(matches("a(?:bc)?(?=d)?d", "abcd")).isTrue();
    }

    private static boolean matches(String source, String text) {
        return OnigurumaPattern.translate(source).matcher(text).matches();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                ".",
                "^a",
                "a$",
                "\\w+",
                "\\b",
                "\\h",
                "\\x41",
                "\\u0041",
                "\\p{Han}",
                "\\p{^L}",
                "\\pL",
                "[[:alpha:]]",
                "[a&&b]",
                "[]a]",
                "(?>a)",
                "(?m:a)",
                "(?<name>a)",
                "(?#comment)",
                "(a|b)*",
                "(?:ab)+",
                "(ab){2,}",
                "a{2}+",
                "a{,3}",
                "a{b",
                "(a",
                "a\\"
            })
    void whatMeansSomethingElseInJavaIsRefused(String source) {
        assertThatThrownBy(() -> OnigurumaPattern.translate(source))
                .isInstanceOf(TokenizerException.class)
                .hasMessageContaining(source);
    }

    @Test
    void longRunsAreMatchedWithoutDeepRecursion() {
        Pattern pattern = OnigurumaPattern.translate("(?i:'s)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\s+");
        assertThat(pattern.matcher("a".repeat(1_000_000)).matches()).isTrue();
    }
}
