package dev.dormouse.model.chat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Cuts a template into tokens, with {@code trim_blocks} and {@code lstrip_blocks} on.
 *
 * <p>White space is treated as by jinja2 3.1's lexer: one final newline of the source is dropped;
 * the newline after a block or comment is dropped; white space between the start of a line and a
 * block or comment is dropped; {@code -} and {@code +} at a tag's edge strip all or keep all.
 */
final class Lexer {
    private static final List<String> OPERATORS =
            List.of(
                    "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(",
                    ")", "{", "}", ">", "<", "=", ".", ":", "|", ",");

    private final String source;
    private final List<Token> tokens = new ArrayList<>();
    private int position;
    private int line = 1;
    private int lineCountedTo;
    private boolean lineStarting = true;

    private Lexer(String source) {
        this.source = source;
    }

    static List<Token> tokenize(String template) {
        String source = template.replace("\r\n", "\n").replace('\r', '\n');
        if (source.endsWith("\n")) {
            source = source.substring(0, source.length() - 1);
        }
        Lexer lexer = new Lexer(source);
        lexer.run();
        return lexer.tokens;
    }

    private void run() {
        while (position < source.length()) {
            int tag = nextTag(position);
            if (tag < 0) {
                add(Token.Kind.DATA, source.substring(position));
                position = source.length();
                break;
            }
            char type = source.charAt(tag + 1);
            String text = source.substring(position, tag);
            position = tag + 2;
            char sign = sign();
            addData(stripped(text, sign, type == '{'));
            switch (type) {
                case '#' -> comment();
                case '{' -> tag(Token.Kind.VARIABLE_BEGIN, Token.Kind.VARIABLE_END, "}}");
                default -> {
                    if (!raw()) {
                        tag(Token.Kind.BLOCK_BEGIN, Token.Kind.BLOCK_END, "%}");
                    }
                }
            }
        }
        add(Token.Kind.END, "");
    }

    private int nextTag(int from) {
        for (int i = from; i + 1 < source.length(); i++) {
            if (source.charAt(i) == '{' && "{%#".indexOf(source.charAt(i + 1)) >= 0) {
                return i;
            }
        }
        return -1;
    }

    private char sign() {
        if (position < source.length() && "+-".indexOf(source.charAt(position)) >= 0) {
            return source.charAt(position++);
        }
        return 0;
    }

    private String stripped(String text, char sign, boolean variable) {
        if (sign == '-') {
            return PyStrings.strip(text, false, true);
        }
        if (sign == 0 && !variable) {
            int lineStart = text.lastIndexOf('\n') + 1;
            boolean atLineStart = lineStart > 0 || lineStarting;
            if (atLineStart && PyStrings.strip(text.substring(lineStart), true, true).isEmpty()) {
                return text.substring(0, lineStart);
            }
        }
        return text;
    }

    private void comment() {
        int end = source.indexOf("#}", position);
        if (end < 0) {
            throw failure("a comment is not closed");
        }
        char edge = end > position ? source.charAt(end - 1) : 0;
        position = end + 2;
        skipAfterTag(edge == '-', edge != '-' && edge != '+');
    }

    /** Reads a raw block when one starts here; else moves nothing. */
    private boolean raw() {
        int body = endOfWordTag("raw", position);
        if (body < 0) {
            return false;
        }
        if (source.charAt(body - 3) == '-') {
            body = skipSpaces(body);
        }
        for (int i = source.indexOf("{%", body); i >= 0; i = source.indexOf("{%", i + 1)) {
            position = i + 2;
            char sign = sign();
            int end = endOfWordTag("endraw", position);
            if (end >= 0) {
                lineStarting = source.charAt(body - 1) == '\n';
                addData(stripped(source.substring(body, i), sign, false));
                char edge = source.charAt(end - 3);
                position = end;
                skipAfterTag(edge == '-', edge != '-' && edge != '+');
                return true;
            }
        }
        throw failure("a raw block is not closed");
    }

    /** Where a tag of just this word ends, if one starts at {@code from}, else −1. */
    private int endOfWordTag(String word, int from) {
        int at = skipSpaces(from);
        if (!source.startsWith(word, at)) {
            return -1;
        }
        at = skipSpaces(at + word.length());
        if (source.startsWith("%}", at)) {
            return at + 2;
        }
        return source.startsWith("-%}", at) || source.startsWith("+%}", at) ? at + 3 : -1;
    }

    private void tag(Token.Kind begin, Token.Kind end, String close) {
        add(begin, "");
        Deque<Character> open = new ArrayDeque<>();
        while (true) {
            position = skipSpaces(position);
            if (position >= source.length()) {
                throw failure("a tag is not closed");
            }
            if (open.isEmpty() && closes(close)) {
                add(end, "");
                return;
            }
            char c = source.charAt(position);
            if (c == '\'' || c == '"') {
                string(c);
            } else if (isDigit(c)) {
                number();
            } else if (Character.isLetter(c) || c == '_') {
                int start = position;
                while (position < source.length()
                        && (Character.isLetterOrDigit(source.charAt(position))
                                || source.charAt(position) == '_')) {
                    position++;
                }
                add(Token.Kind.NAME, source.substring(start, position));
            } else {
                operator(open);
            }
        }
    }

    private boolean closes(String close) {
        char edge = source.charAt(position);
        boolean block = close.equals("%}");
        boolean signed = edge == '-' || (edge == '+' && block);
        if (!source.startsWith(close, position + (signed ? 1 : 0))) {
            return false;
        }
        position += signed ? 3 : 2;
        skipAfterTag(signed && edge == '-', block && !signed);
        return true;
    }

    private void skipAfterTag(boolean spaces, boolean newline) {
        if (spaces) {
            position = skipSpaces(position);
        } else if (newline && source.startsWith("\n", position)) {
            position++;
        }
        lineStarting = source.charAt(position - 1) == '\n';
    }

    private void operator(Deque<Character> open) {
        for (String operator : OPERATORS) {
            if (source.startsWith(operator, position)) {
                char c = operator.charAt(0);
                int closing = ")]}".indexOf(c);
                if ("([{".indexOf(c) >= 0) {
                    open.push(c);
                } else if (closing >= 0
                        && (open.isEmpty() || open.pop() != "([{".charAt(closing))) {
                    throw failure("unexpected '" + c + "'");
                }
                add(Token.Kind.OPERATOR, operator);
                position += operator.length();
                return;
            }
        }
        throw failure("unexpected character '" + source.charAt(position) + "'");
    }

    private void number() {
        int start = position;
        // After a dot a number is an index, as in rows.0, and has no fraction.
        boolean index = start > 0 && source.charAt(start - 1) == '.';
        digits();
        boolean real = false;
        if (!index && position < source.length() && source.charAt(position) == '.') {
            if (position + 1 < source.length() && isDigit(source.charAt(position + 1))) {
                position++;
                digits();
                real = true;
            }
        }
        if (!index && position < source.length() && "eE".indexOf(source.charAt(position)) >= 0) {
            int mark = position++;
            sign();
            if (position < source.length() && isDigit(source.charAt(position))) {
                digits();
                real = true;
            } else {
                position = mark;
            }
        }
        String text = source.substring(start, position).replace("_", "");
        add(real ? Token.Kind.FLOAT : Token.Kind.INTEGER, text);
    }

    private void digits() {
        while (position < source.length()
                && (isDigit(source.charAt(position)) || source.charAt(position) == '_')) {
            position++;
        }
    }

    private void string(char quote) {
        int start = ++position;
        while (position < source.length() && source.charAt(position) != quote) {
            position += source.charAt(position) == '\\' ? 2 : 1;
        }
        if (position >= source.length()) {
            throw failure("a string is not closed");
        }
        add(Token.Kind.STRING, PyStrings.unescape(source.substring(start, position)));
        position++;
    }

    private int skipSpaces(int from) {
        int at = from;
        while (at < source.length() && PyStrings.isSpace(source.charAt(at))) {
            at++;
        }
        return at;
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private void addData(String text) {
        if (!text.isEmpty()) {
            add(Token.Kind.DATA, text);
        }
    }

    private void add(Token.Kind kind, String text) {
        tokens.add(new Token(kind, text, currentLine()));
    }

    private int currentLine() {
        for (; lineCountedTo < Math.min(position, source.length()); lineCountedTo++) {
            if (source.charAt(lineCountedTo) == '\n') {
                line++;
            }
        }
        return line;
    }

    private ChatTemplateException failure(String what) {
        return ChatTemplateException.failed(
                "parse chat template: line " + currentLine() + ": " + what);
    }
}
