package dev.dormouse.model.tokenizer;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Translates the regular expressions of {@code tokenizer.json}, which are Oniguruma's, to Java's.
 *
 * <p>Only what means the same in both, or has a translation, is accepted. Groups that repeat
 * without bound are not, since Java would match them by recursion, as deep as a text is long.
 */
final class OnigurumaPattern {
    /** General categories of Unicode, which both know by the same names. */
    private static final Pattern PROPERTY =
            Pattern.compile("\\\\[pP]\\{(L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)}");

    private static final Pattern GROUP = Pattern.compile("\\((?:\\?(?::|=|!|<=|<!|i:))?");
    private static final Pattern QUANTIFIER =
            Pattern.compile("(?:[?*+]|\\{\\d+,\\d*}|\\{\\d+}|\\{,\\d+})[?+]?");
    private static final String WHITE_SPACE = "\\p{IsWhite_Space}";

    private final String source;
    private final StringBuilder translated = new StringBuilder();
    private int position;

    private OnigurumaPattern(String source) {
        this.source = source;
    }

    /**
     * Translates a pattern.
     *
     * @throws TokenizerException when it uses what is not supported
     */
    static Pattern translate(String source) {
        return new OnigurumaPattern(source).translate();
    }

    private Pattern translate() {
        boolean inClass = false;
        while (position < source.length()) {
            char c = source.charAt(position);
            if (c == '\\') {
                escape();
            } else if (inClass) {
                // Nested classes and intersections are written differently.
                if (c == '[' || source.startsWith("&&", position)) {
                    throw refused();
                }
                inClass = c != ']';
                take(1);
            } else if (c == '[') {
                inClass = true;
                take(source.startsWith("[^", position) ? 2 : 1);
                if (position < source.length() && source.charAt(position) == ']') {
                    throw refused();
                }
            } else if (c == '(') {
                group();
            } else if (isQuantifier(c)) {
                quantifier();
            } else if (c == '.' || c == '^' || c == '$' || c == '#') {
                // They depend on modes that differ.
                throw refused();
            } else {
                take(1);
            }
        }
        try {
            return Pattern.compile(translated.toString());
        } catch (IllegalArgumentException e) {
            throw refused();
        }
    }

    private void take(int length) {
        translated.append(source, position, position + length);
        position += length;
    }

    private void replace(int length, String by) {
        translated.append(by);
        position += length;
    }

    private void escape() {
        @Nullable Matcher property = at(PROPERTY);
        if (property != null) {
            take(property.end() - position);
            return;
        }
        char c = position + 1 < source.length() ? source.charAt(position + 1) : 0;
        switch (c) {
            case 's' -> replace(2, WHITE_SPACE);
            case 'S' -> replace(2, WHITE_SPACE.replace("\\p", "\\P"));
            case 'd' -> replace(2, "\\p{Nd}");
            case 'D' -> replace(2, "\\P{Nd}");
            case 'r', 'n', 't' -> take(2);
            default -> {
                if (c <= ' ' || c >= 127 || Character.isLetterOrDigit(c)) {
                    throw refused();
                }
                take(2);
            }
        }
    }

    private void group() {
        @Nullable Matcher group = at(GROUP);
        boolean extended = source.startsWith("(?", position);
        if (group == null || (extended && group.end() == position + 1)) {
            throw refused();
        }
        if (group.group().equals("(?i:")) {
            // Oniguruma folds all letters of Unicode, Java only ASCII unless told.
            replace(4, "(?iu:");
        } else {
            take(group.end() - position);
        }
    }

    private static boolean isQuantifier(char c) {
        return c == '?' || c == '*' || c == '+' || c == '{';
    }

    private void quantifier() {
        @Nullable Matcher quantifier = at(QUANTIFIER);
        if (quantifier == null) {
            throw refused();
        }
        String text = quantifier.group();
        boolean ofGroup = position > 0 && source.charAt(position - 1) == ')';
        boolean bounded = text.charAt(0) == '?' || text.matches("\\{.*\\d}.*");
        // What follows a closing brace is another quantifier to Oniguruma, a mode to Java.
        boolean ambiguous = (text.startsWith("{") && !text.endsWith("}")) || text.startsWith("{,");
        if (ambiguous || (ofGroup && !bounded)) {
            throw refused();
        }
        take(text.length());
    }

    private @Nullable Matcher at(Pattern pattern) {
        Matcher matcher = pattern.matcher(source).region(position, source.length());
        return matcher.lookingAt() ? matcher : null;
    }

    private TokenizerException refused() {
        return new TokenizerException(
                "load tokenizer: the pattern '%s' is not supported from character %d on"
                        .formatted(source, position));
    }
}
