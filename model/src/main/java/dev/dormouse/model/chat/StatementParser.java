package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Parses a template's text and tags. */
final class StatementParser {
    private final TokenStream tokens;
    private final ExpressionParser expressions;
    private int loops;

    private StatementParser(TokenStream tokens) {
        this.tokens = tokens;
        this.expressions = new ExpressionParser(tokens);
    }

    /**
     * Parses a whole template.
     *
     * @throws ChatTemplateException naming the line of what is wrong or not supported
     */
    static List<Statement> parse(String template) {
        StatementParser parser = new StatementParser(new TokenStream(Lexer.tokenize(template)));
        List<Statement> statements = parser.until(Set.of());
        if (!parser.tokens.at(Token.Kind.END)) {
            throw parser.tokens.failure("unexpected " + parser.tokens.peek().describe());
        }
        return statements;
    }

    /** Statements up to a tag that starts with one of {@code ends}, whose name is next then. */
    private List<Statement> until(Set<String> ends) {
        tokens.enter();
        List<Statement> statements = new ArrayList<>();
        while (!tokens.at(Token.Kind.END)) {
            Token token = tokens.next();
            switch (token.kind()) {
                case DATA -> statements.add(new Statement.Text(token.text()));
                case VARIABLE_BEGIN -> {
                    statements.add(new Statement.Output(expressions.tuple()));
                    tokens.expect(Token.Kind.VARIABLE_END, "'}}'");
                }
                case BLOCK_BEGIN -> {
                    Token name = tokens.peek();
                    if (name.kind() == Token.Kind.NAME && ends.contains(name.text())) {
                        tokens.leave();
                        return statements;
                    }
                    statements.add(tag());
                }
                case VARIABLE_END, BLOCK_END, NAME, STRING, INTEGER, FLOAT, OPERATOR, END ->
                        throw tokens.failure("unexpected " + token.describe());
            }
        }
        if (!ends.isEmpty()) {
            throw tokens.failure("a block is not closed, expected one of " + ends);
        }
        tokens.leave();
        return statements;
    }

    private Statement tag() {
        String name = tokens.expect(Token.Kind.NAME, "the name of a tag").text();
        return switch (name) {
            case "if" -> ifTag();
            case "for" -> forTag();
            case "set" -> setTag();
            case "macro" -> macroTag();
            case "filter" -> {
                List<Statement.FilterCall> filters = new ArrayList<>();
                do {
                    filters.add(expressions.filterCall());
                } while (tokens.skipOperator("|"));
                yield new Statement.FilterBlock(filters, block("endfilter"));
            }
            // Hugging Face's mark around what a model is trained to say; it changes no text.
            case "generation" -> new Statement.FilterBlock(List.of(), block("endgeneration"));
            case "break" -> loopControl(new Statement.Break());
            case "continue" -> loopControl(new Statement.Continue());
            default -> throw tokens.failure("tag '" + name + "' is not supported");
        };
    }

    private Statement loopControl(Statement statement) {
        if (loops == 0) {
            throw tokens.failure("break or continue outside of a loop");
        }
        endTag();
        return statement;
    }

    private void endTag() {
        tokens.expect(Token.Kind.BLOCK_END, "'%}'");
    }

    /** The body after a tag's end, through the closing tag. */
    private List<Statement> block(String end) {
        endTag();
        List<Statement> body = until(Set.of(end));
        tokens.expectName(end);
        endTag();
        return body;
    }

    private Statement ifTag() {
        List<Statement.Branch> branches = new ArrayList<>();
        List<Statement> otherwise = List.of();
        do {
            Expression condition = expressions.tupleWithoutCondition();
            endTag();
            List<Statement> body = until(Set.of("elif", "else", "endif"));
            branches.add(new Statement.Branch(condition, body));
        } while (tokens.skipName("elif"));
        if (tokens.skipName("else")) {
            endTag();
            otherwise = until(Set.of("endif"));
        }
        tokens.expectName("endif");
        endTag();
        return new Statement.If(branches, otherwise);
    }

    private Statement forTag() {
        Statement.Target target = target();
        tokens.expectName("in");
        Expression iterable = expressions.tupleWithoutCondition();
        @Nullable Expression filter = tokens.skipName("if") ? expressions.conditional() : null;
        if (tokens.peek().isName("recursive")) {
            throw tokens.failure("recursive loops are not supported");
        }
        endTag();
        loops++;
        List<Statement> body = until(Set.of("else", "endfor"));
        loops--;
        List<Statement> otherwise = List.of();
        if (tokens.skipName("else")) {
            endTag();
            otherwise = until(Set.of("endfor"));
        }
        tokens.expectName("endfor");
        endTag();
        return new Statement.For(target, iterable, filter, body, otherwise);
    }

    private Statement setTag() {
        Statement.Target target = target();
        if (tokens.skipOperator("=")) {
            Expression value = expressions.tuple();
            endTag();
            return new Statement.Assign(target, value);
        }
        List<Statement.FilterCall> filters = new ArrayList<>();
        while (tokens.skipOperator("|")) {
            filters.add(expressions.filterCall());
        }
        return new Statement.AssignBlock(target, filters, block("endset"));
    }

    private Statement.Target target() {
        Statement.Target first = singleTarget();
        if (!tokens.peek().isOperator(",")) {
            return first;
        }
        List<Statement.Target> targets = new ArrayList<>(List.of(first));
        while (tokens.skipOperator(",") && !tokens.peek().isName("in")) {
            targets.add(singleTarget());
        }
        return new Statement.Unpack(targets);
    }

    private Statement.Target singleTarget() {
        if (tokens.skipOperator("(")) {
            tokens.enter();
            Statement.Target inside = target();
            tokens.leave();
            tokens.expectOperator(")");
            return inside;
        }
        String name = tokens.expect(Token.Kind.NAME, "the name of a variable").text();
        if (tokens.skipOperator(".")) {
            String field = tokens.expect(Token.Kind.NAME, "the name of a field").text();
            return new Statement.NamespaceField(name, field);
        }
        return new Statement.Variable(name);
    }

    private Statement macroTag() {
        String name = tokens.expect(Token.Kind.NAME, "the name of a macro").text();
        tokens.expectOperator("(");
        List<Statement.Parameter> parameters = new ArrayList<>();
        while (!tokens.skipOperator(")")) {
            if (!parameters.isEmpty()) {
                tokens.expectOperator(",");
            }
            String parameter = tokens.expect(Token.Kind.NAME, "the name of a parameter").text();
            @Nullable Expression fallback =
                    tokens.skipOperator("=") ? expressions.conditional() : null;
            parameters.add(new Statement.Parameter(parameter, fallback));
        }
        int enclosingLoops = loops;
        loops = 0;
        List<Statement> body = block("endmacro");
        loops = enclosingLoops;
        return new Statement.Macro(name, parameters, body);
    }
}
