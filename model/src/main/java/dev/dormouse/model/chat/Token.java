package dev.dormouse.model.chat;

/**
 * A lexical unit of a template.
 *
 * @param text the literal text of data, the decoded value of a string, else the source's characters
 * @param line from 1, for messages
 */
record Token(Kind kind, String text, int line) {
    enum Kind {
        DATA,
        VARIABLE_BEGIN,
        VARIABLE_END,
        BLOCK_BEGIN,
        BLOCK_END,
        NAME,
        STRING,
        INTEGER,
        FLOAT,
        OPERATOR,
        END
    }

    boolean is(Kind wanted, String wantedText) {
        return kind == wanted && text.equals(wantedText);
    }

    boolean isOperator(String operator) {
        return is(Kind.OPERATOR, operator);
    }

    boolean isName(String name) {
        return is(Kind.NAME, name);
    }

    String describe() {
        return switch (kind) {
            case DATA -> "template data";
            case VARIABLE_BEGIN, VARIABLE_END, BLOCK_BEGIN, BLOCK_END -> "end of tag";
            case END -> "end of template";
            case NAME, STRING, INTEGER, FLOAT, OPERATOR -> "'" + text + "'";
        };
    }
}
