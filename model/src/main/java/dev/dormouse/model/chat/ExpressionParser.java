package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Parses expressions by the precedence of jinja2 3.1's {@code parser.py}. */
final class ExpressionParser {
    private static final Set<String> COMPARISONS = Set.of("==", "!=", "<", "<=", ">", ">=");

    private final TokenStream tokens;

    ExpressionParser(TokenStream tokens) {
        this.tokens = tokens;
    }

    /** A whole expression; commas at the top make a tuple. */
    Expression tuple() {
        return tuple(true);
    }

    /** As {@link #tuple()}, leaving an {@code if} to the caller. */
    Expression tupleWithoutCondition() {
        return tuple(false);
    }

    private Expression tuple(boolean conditions) {
        Expression first = conditions ? conditional() : or();
        if (!tokens.peek().isOperator(",")) {
            return first;
        }
        List<Expression> items = new ArrayList<>(List.of(first));
        while (tokens.skipOperator(",")) {
            if (endsTuple()) {
                break;
            }
            items.add(conditions ? conditional() : or());
        }
        return new Expression.Sequence(items, true);
    }

    private boolean endsTuple() {
        return tokens.at(Token.Kind.VARIABLE_END)
                || tokens.at(Token.Kind.BLOCK_END)
                || tokens.peek().isOperator(")");
    }

    Expression conditional() {
        tokens.enter();
        Expression then = or();
        while (tokens.skipName("if")) {
            Expression condition = or();
            @Nullable Expression otherwise = tokens.skipName("else") ? conditional() : null;
            then = new Expression.Conditional(condition, then, otherwise);
        }
        tokens.leave();
        return then;
    }

    private Expression or() {
        Expression left = and();
        while (tokens.skipName("or")) {
            left = new Expression.Or(left, and());
        }
        return left;
    }

    private Expression and() {
        Expression left = not();
        while (tokens.skipName("and")) {
            left = new Expression.And(left, not());
        }
        return left;
    }

    private Expression not() {
        if (!tokens.skipName("not")) {
            return comparison();
        }
        tokens.enter();
        Expression negated = new Expression.Not(not());
        tokens.leave();
        return negated;
    }

    private Expression comparison() {
        Expression first = sum();
        List<Expression.Link> links = new ArrayList<>();
        while (true) {
            Token token = tokens.peek();
            if (token.kind() == Token.Kind.OPERATOR && COMPARISONS.contains(token.text())) {
                tokens.next();
                links.add(new Expression.Link(token.text(), sum()));
            } else if (tokens.skipName("in")) {
                links.add(new Expression.Link("in", sum()));
            } else if (token.isName("not") && tokens.peekNext().isName("in")) {
                tokens.next();
                tokens.next();
                links.add(new Expression.Link("not in", sum()));
            } else {
                return links.isEmpty() ? first : new Expression.Comparison(first, links);
            }
        }
    }

    private Expression sum() {
        Expression left = concatenation();
        while (tokens.peek().isOperator("+") || tokens.peek().isOperator("-")) {
            left = new Expression.Arithmetic(tokens.next().text(), left, concatenation());
        }
        return left;
    }

    private Expression concatenation() {
        Expression first = product();
        if (!tokens.peek().isOperator("~")) {
            return first;
        }
        List<Expression> parts = new ArrayList<>(List.of(first));
        while (tokens.skipOperator("~")) {
            parts.add(product());
        }
        return new Expression.Concatenation(parts);
    }

    private Expression product() {
        Expression left = power();
        while (tokens.at(Token.Kind.OPERATOR)
                && Set.of("*", "/", "//", "%").contains(tokens.peek().text())) {
            left = new Expression.Arithmetic(tokens.next().text(), left, power());
        }
        return left;
    }

    private Expression power() {
        Expression left = unary(true);
        while (tokens.skipOperator("**")) {
            left = new Expression.Arithmetic("**", left, unary(true));
        }
        return left;
    }

    private Expression unary(boolean withFilters) {
        tokens.enter();
        Expression value;
        if (tokens.skipOperator("-")) {
            value = new Expression.Negative(unary(false));
        } else if (tokens.skipOperator("+")) {
            value = unary(false);
        } else {
            value = postfix(primary());
        }
        tokens.leave();
        return withFilters ? filters(value) : value;
    }

    private Expression primary() {
        Token token = tokens.next();
        return switch (token.kind()) {
            case NAME ->
                    switch (token.text()) {
                        case "true", "True" -> new Expression.Constant(true);
                        case "false", "False" -> new Expression.Constant(false);
                        case "none", "None" -> new Expression.Constant(PyNone.NONE);
                        default -> new Expression.Name(token.text());
                    };
            case STRING -> {
                StringBuilder text = new StringBuilder(token.text());
                while (tokens.at(Token.Kind.STRING)) {
                    text.append(tokens.next().text());
                }
                yield new Expression.Constant(text.toString());
            }
            case INTEGER -> new Expression.Constant(integer(token));
            case FLOAT -> new Expression.Constant(Double.parseDouble(token.text()));
            case OPERATOR ->
                    switch (token.text()) {
                        case "(" -> parenthesized();
                        case "[" -> list();
                        case "{" -> dictionary();
                        default -> throw unexpected(token);
                    };
            case DATA, VARIABLE_BEGIN, VARIABLE_END, BLOCK_BEGIN, BLOCK_END, END ->
                    throw unexpected(token);
        };
    }

    private long integer(Token token) {
        try {
            return Long.parseLong(token.text());
        } catch (NumberFormatException e) {
            throw tokens.failure("integer " + token.text() + " exceeds 64 bits");
        }
    }

    private Expression parenthesized() {
        if (tokens.skipOperator(")")) {
            return new Expression.Sequence(List.of(), true);
        }
        Expression inside = tuple();
        tokens.expectOperator(")");
        return inside;
    }

    private Expression list() {
        List<Expression> items = new ArrayList<>();
        while (!tokens.skipOperator("]")) {
            if (!items.isEmpty()) {
                tokens.expectOperator(",");
                if (tokens.skipOperator("]")) {
                    break;
                }
            }
            items.add(conditional());
        }
        return new Expression.Sequence(items, false);
    }

    private Expression dictionary() {
        List<Expression.Entry> entries = new ArrayList<>();
        while (!tokens.skipOperator("}")) {
            if (!entries.isEmpty()) {
                tokens.expectOperator(",");
                if (tokens.skipOperator("}")) {
                    break;
                }
            }
            Expression key = conditional();
            tokens.expectOperator(":");
            entries.add(new Expression.Entry(key, conditional()));
        }
        return new Expression.Dictionary(entries);
    }

    private Expression postfix(Expression start) {
        Expression value = start;
        while (true) {
            if (tokens.skipOperator(".")) {
                value = attribute(value);
            } else if (tokens.skipOperator("[")) {
                value = subscript(value);
            } else if (tokens.peek().isOperator("(")) {
                value = new Expression.Call(value, arguments());
            } else {
                return value;
            }
        }
    }

    private Expression attribute(Expression object) {
        if (tokens.at(Token.Kind.INTEGER)) {
            return new Expression.Item(object, new Expression.Constant(integer(tokens.next())));
        }
        return new Expression.Attribute(object, tokens.expect(Token.Kind.NAME, "a name").text());
    }

    private Expression subscript(Expression object) {
        @Nullable Expression start = tokens.peek().isOperator(":") ? null : tuple();
        if (start != null && tokens.skipOperator("]")) {
            return new Expression.Item(object, start);
        }
        tokens.expectOperator(":");
        @Nullable Expression stop = sliceBound();
        @Nullable Expression step = tokens.skipOperator(":") ? sliceBound() : null;
        tokens.expectOperator("]");
        return new Expression.Slice(object, start, stop, step);
    }

    private @Nullable Expression sliceBound() {
        boolean absent = tokens.peek().isOperator(":") || tokens.peek().isOperator("]");
        return absent ? null : conditional();
    }

    private Expression filters(Expression start) {
        Expression value = start;
        while (true) {
            if (tokens.skipOperator("|")) {
                Statement.FilterCall filter = filterCall();
                value = new Expression.Filter(value, filter.name(), filter.arguments());
            } else if (tokens.skipName("is")) {
                value = test(value);
            } else if (tokens.peek().isOperator("(")) {
                value = new Expression.Call(value, arguments());
            } else {
                return value;
            }
        }
    }

    /** A filter's name and arguments, after its bar. */
    Statement.FilterCall filterCall() {
        String name = tokens.expect(Token.Kind.NAME, "the name of a filter").text();
        boolean called = tokens.peek().isOperator("(");
        return new Statement.FilterCall(name, called ? arguments() : Expression.Arguments.NONE);
    }

    private Expression test(Expression input) {
        boolean negated = tokens.skipName("not");
        String name = tokens.expect(Token.Kind.NAME, "the name of a test").text();
        Expression.Arguments arguments = Expression.Arguments.NONE;
        Token token = tokens.peek();
        if (token.isOperator("(")) {
            arguments = arguments();
        } else if (startsBareArgument(token)) {
            Expression argument = postfix(primary());
            arguments = new Expression.Arguments(List.of(argument), Map.of());
        }
        return new Expression.Test(input, name, arguments, negated);
    }

    private static boolean startsBareArgument(Token token) {
        return switch (token.kind()) {
            case NAME -> !Set.of("else", "or", "and", "if", "is").contains(token.text());
            case STRING, INTEGER, FLOAT -> true;
            case OPERATOR -> token.text().equals("[") || token.text().equals("{");
            case DATA, VARIABLE_BEGIN, VARIABLE_END, BLOCK_BEGIN, BLOCK_END, END -> false;
        };
    }

    private Expression.Arguments arguments() {
        tokens.expectOperator("(");
        List<Expression> positional = new ArrayList<>();
        Map<String, Expression> named = new LinkedHashMap<>();
        while (!tokens.skipOperator(")")) {
            if (!positional.isEmpty() || !named.isEmpty()) {
                tokens.expectOperator(",");
                if (tokens.skipOperator(")")) {
                    break;
                }
            }
            if (tokens.at(Token.Kind.NAME) && tokens.peekNext().isOperator("=")) {
                String name = tokens.next().text();
                tokens.next();
                named.put(name, conditional());
            } else if (named.isEmpty()) {
                positional.add(conditional());
            } else {
                throw tokens.failure("a positional argument follows a named one");
            }
        }
        return new Expression.Arguments(positional, named);
    }

    private ChatTemplateException unexpected(Token token) {
        return tokens.failure("unexpected " + token.describe());
    }
}
