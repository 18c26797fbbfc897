package dev.dormouse.model.chat;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What a template computes. */
sealed interface Expression {
    record Constant(Object value) implements Expression {}

    record Name(String name) implements Expression {}

    record Sequence(List<Expression> items, boolean tuple) implements Expression {}

    record Entry(Expression key, Expression value) {}

    record Dictionary(List<Entry> entries) implements Expression {}

    record Attribute(Expression object, String name) implements Expression {}

    record Item(Expression object, Expression index) implements Expression {}

    record Slice(
            Expression object,
            @Nullable Expression start,
            @Nullable Expression stop,
            @Nullable Expression step)
            implements Expression {}

    /** What stands in parentheses after a function, filter or test. */
    record Arguments(List<Expression> positional, Map<String, Expression> named) {
        static final Arguments NONE = new Arguments(List.of(), Map.of());
    }

    record Call(Expression function, Arguments arguments) implements Expression {}

    record Filter(Expression input, String name, Arguments arguments) implements Expression {}

    record Test(Expression input, String name, Arguments arguments, boolean negated)
            implements Expression {}

    record Negative(Expression operand) implements Expression {}

    record Not(Expression operand) implements Expression {}

    record And(Expression left, Expression right) implements Expression {}

    record Or(Expression left, Expression right) implements Expression {}

    /** One of {@code + - * / // % **}. */
    record Arithmetic(String operator, Expression left, Expression right) implements Expression {}

    record Concatenation(List<Expression> parts) implements Expression {}

    /** One link of a chain such as {@code 1 < x < 5}: an operator and its right side. */
    record Link(String operator, Expression right) {}

    record Comparison(Expression first, List<Link> links) implements Expression {}

    record Conditional(Expression condition, Expression then, @Nullable Expression otherwise)
            implements Expression {}
}
