package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What Python's {@code str} does to characters. */
final class PyStrings {
    private PyStrings() {}

    /** As {@code str.isspace}: Unicode white space and four separators. */
    static boolean isSpace(int c) {
        return (c >= 0x09 && c <= 0x0d)
                || (c >= 0x1c && c <= 0x20)
                || c == 0x85
                || c == 0xa0
                || (c > 0xff && Character.isSpaceChar(c));
    }

    static String strip(String text, boolean left, boolean right) {
        int start = 0;
        int end = text.length();
        while (left && start < end && isSpace(text.charAt(start))) {
            start++;
        }
        while (right && end > start && isSpace(text.charAt(end - 1))) {
            end--;
        }
        return text.substring(start, end);
    }

    /** As {@code str.strip(chars)} and its one-sided kin. */
    static String strip(String text, String chars, boolean left, boolean right) {
        int start = 0;
        int end = text.length();
        while (left && start < end && chars.indexOf(text.charAt(start)) >= 0) {
            start++;
        }
        while (right && end > start && chars.indexOf(text.charAt(end - 1)) >= 0) {
            end--;
        }
        return text.substring(start, end);
    }

    /** As {@code str.split()}: at runs of white space, at most {@code limit} times. */
    static List<Object> split(String text, long limit) {
        List<Object> parts = new ArrayList<>();
        int at = 0;
        while (true) {
            while (at < text.length() && isSpace(text.charAt(at))) {
                at++;
            }
            if (at == text.length()) {
                return parts;
            }
            if (parts.size() == limit) {
                parts.add(strip(text.substring(at), false, true));
                return parts;
            }
            int start = at;
            while (at < text.length() && !isSpace(text.charAt(at))) {
                at++;
            }
            parts.add(text.substring(start, at));
        }
    }

    /** As {@code str.split(separator)}, at most {@code limit} times. */
    static List<Object> split(String text, String separator, long limit) {
        if (separator.isEmpty()) {
            throw ChatTemplateException.failed("render chat template: split at an empty separator");
        }
        List<Object> parts = new ArrayList<>();
        int start = 0;
        for (int at = text.indexOf(separator);
                at >= 0 && parts.size() != limit;
                at = text.indexOf(separator, start)) {
            parts.add(text.substring(start, at));
            start = at + separator.length();
        }
        parts.add(text.substring(start));
        return parts;
    }

    /** As {@code str.splitlines()}, for the line ends that occur in texts. */
    static List<String> lines(String text) {
        return text.lines().toList();
    }

    static String capitalize(String text) {
        if (text.isEmpty()) {
            return text;
        }
        int first = text.offsetByCodePoints(0, 1);
        return upper(text.substring(0, first)) + lower(text.substring(first));
    }

    /** As {@code str.title}: a capital after each character that is no letter. */
    static String title(String text) {
        StringBuilder out = new StringBuilder(text.length());
        boolean inWord = false;
        for (int c : text.codePoints().toArray()) {
            out.appendCodePoint(inWord ? Character.toLowerCase(c) : Character.toTitleCase(c));
            inWord = Character.isLetter(c);
        }
        return out.toString();
    }

    static String upper(String text) {
        return text.toUpperCase(Locale.ROOT);
    }

    static String lower(String text) {
        return text.toLowerCase(Locale.ROOT);
    }

    /** The value of a string literal's inside; an unknown escape stands for itself. */
    static String unescape(String literal) {
        if (literal.indexOf('\\') < 0) {
            return literal;
        }
        StringBuilder out = new StringBuilder();
        int at = 0;
        while (at < literal.length()) {
            char c = literal.charAt(at++);
            if (c != '\\' || at == literal.length()) {
                out.append(c);
                continue;
            }
            char escape = literal.charAt(at++);
            int digits =
                    switch (escape) {
                        case 'x' -> 2;
                        case 'u' -> 4;
                        case 'U' -> 8;
                        default -> 0;
                    };
            if (digits > 0) {
                out.appendCodePoint(hexadecimal(literal, at, digits));
                at += digits;
                continue;
            }
            switch (escape) {
                case 'n' -> out.append('\n');
                case 't' -> out.append('\t');
                case 'r' -> out.append('\r');
                case '0' -> out.append('\0');
                case 'a' -> out.append('\u0007');
                case 'b' -> out.append('\b');
                case 'f' -> out.append('\f');
                case 'v' -> out.append('\u000b');
                case '\\', '\'', '"' -> out.append(escape);
                case '\n' -> {
                    // An escaped line end continues the line.
                }
                default -> out.append('\\').append(escape);
            }
        }
        return out.toString();
    }

    private static int hexadecimal(String literal, int from, int digits) {
        try {
            int value = Integer.parseInt(literal, from, from + digits, 16);
            if (Character.isValidCodePoint(value)) {
                return value;
            }
        } catch (NumberFormatException | IndexOutOfBoundsException e) {
            // Reported below, as is a number that is no character.
        }
        throw ChatTemplateException.failed(
                "parse chat template: bad escape in string '" + literal + "'");
    }
}
