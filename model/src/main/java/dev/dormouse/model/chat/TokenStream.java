package dev.dormouse.model.chat;

import java.util.List;

/** Hands out tokens one by one and reports what it did not expect. */
final class TokenStream {
    /** Parsing recurses; this bounds how far, whatever the template. */
    private static final int MAX_NESTING = 100;

    private final List<Token> tokens;
    private int position;
    private int nesting;

    TokenStream(List<Token> tokens) {
        this.tokens = tokens;
    }

    Token peek() {
        return tokens.get(position);
    }

    Token peekNext() {
        return tokens.get(Math.min(position + 1, tokens.size() - 1));
    }

    Token next() {
        Token token = tokens.get(position);
        if (token.kind() != Token.Kind.END) {
            position++;
        }
        return token;
    }

    boolean at(Token.Kind kind) {
        return peek().kind() == kind;
    }

    boolean skipOperator(String operator) {
        boolean found = peek().isOperator(operator);
        if (found) {
            position++;
        }
        return found;
    }

    boolean skipName(String name) {
        boolean found = peek().isName(name);
        if (found) {
            position++;
        }
        return found;
    }

    void expectOperator(String operator) {
        if (!skipOperator(operator)) {
            throw failure("expected '" + operator + "', found " + peek().describe());
        }
    }

    void expectName(String name) {
        if (!skipName(name)) {
            throw failure("expected '" + name + "', found " + peek().describe());
        }
    }

    Token expect(Token.Kind kind, String what) {
        if (!at(kind)) {
            throw failure("expected " + what + ", found " + peek().describe());
        }
        return next();
    }

    void enter() {
        if (++nesting > MAX_NESTING) {
            throw failure("nested deeper than the limit of " + MAX_NESTING);
        }
    }

    void leave() {
        nesting--;
    }

    ChatTemplateException failure(String what) {
        return ChatTemplateException.failed(
                "parse chat template: line " + peek().line() + ": " + what);
    }
}
