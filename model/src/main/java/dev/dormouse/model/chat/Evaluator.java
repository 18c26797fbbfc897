package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Computes expressions. Used by one rendering. */
final class Evaluator {
    private final Budget budget;
    private final Tests tests;
    private final Filters filters;

    Evaluator(Budget budget) {
        this.budget = budget;
        this.tests = new Tests(budget);
        this.filters = new Filters(budget, tests);
    }

    Object evaluate(Expression expression, Scope scope) {
        budget.enter();
        Object value =
                switch (expression) {
                    case Expression.Constant constant -> constant.value();
                    case Expression.Name name -> scope.get(name.name());
                    case Expression.Sequence sequence -> {
                        List<Object> items = evaluateAll(sequence.items(), scope);
                        yield sequence.tuple() ? PyList.tuple(items) : PyList.list(items);
                    }
                    case Expression.Dictionary dictionary -> dictionary(dictionary, scope);
                    case Expression.Attribute(Expression object, String name) ->
                            PyMethods.attribute(evaluate(object, scope), name, budget);
                    case Expression.Item item -> item(item, scope);
                    case Expression.Slice slice -> slice(slice, scope);
                    case Expression.Call call -> call(call, scope);
                    case Expression.Filter(
                                    Expression input,
                                    String name,
                                    Expression.Arguments arguments) ->
                            filter(evaluate(input, scope), name, arguments, scope);
                    case Expression.Test test ->
                            tests.apply(
                                            evaluate(test.input(), scope),
                                            arguments(test.name(), test.arguments(), scope))
                                    != test.negated();
                    case Expression.Negative(Expression operand) ->
                            PyOperators.arithmetic("-", 0L, evaluate(operand, scope), budget);
                    case Expression.Not(Expression operand) -> !isTrue(operand, scope);
                    case Expression.And(Expression left, Expression right) -> {
                        Object first = evaluate(left, scope);
                        yield PyOperators.isTrue(first) ? evaluate(right, scope) : first;
                    }
                    case Expression.Or(Expression left, Expression right) -> {
                        Object first = evaluate(left, scope);
                        yield PyOperators.isTrue(first) ? first : evaluate(right, scope);
                    }
                    case Expression.Arithmetic(
                                    String operator,
                                    Expression left,
                                    Expression right) ->
                            PyOperators.arithmetic(
                                    operator,
                                    evaluate(left, scope),
                                    evaluate(right, scope),
                                    budget);
                    case Expression.Concatenation(List<Expression> parts) ->
                            PyMethods.join("", evaluateAll(parts, scope), budget);
                    case Expression.Comparison comparison -> comparison(comparison, scope);
                    case Expression.Conditional conditional -> conditional(conditional, scope);
                };
        budget.leave();
        return value;
    }

    boolean isTrue(Expression expression, Scope scope) {
        return PyOperators.isTrue(evaluate(expression, scope));
    }

    Object filter(Object input, String name, Expression.Arguments arguments, Scope scope) {
        return filters.apply(input, arguments(name, arguments, scope));
    }

    private List<Object> evaluateAll(List<Expression> expressions, Scope scope) {
        List<Object> values = new ArrayList<>(expressions.size());
        for (Expression expression : expressions) {
            values.add(evaluate(expression, scope));
        }
        return values;
    }

    private Object dictionary(Expression.Dictionary dictionary, Scope scope) {
        Map<Object, Object> entries = new LinkedHashMap<>();
        for (Expression.Entry entry : dictionary.entries()) {
            Object key = PyDict.key(evaluate(entry.key(), scope));
            entries.put(key, evaluate(entry.value(), scope));
        }
        return new PyDict(entries);
    }

    private Object item(Expression.Item item, Scope scope) {
        Object object = evaluate(item.object(), scope);
        Object index = evaluate(item.index(), scope);
        // A dict's own keys come before its methods here, unlike after a dot.
        Object value = PyOperators.item(object, index, budget);
        return value instanceof PyUndefined && index instanceof String name
                ? PyMethods.attribute(object, name, budget)
                : value;
    }

    private Object slice(Expression.Slice slice, Scope scope) {
        Object object = evaluate(slice.object(), scope);
        budget.steps(PyOperators.length(object, budget));
        return PyOperators.slice(
                object,
                bound(slice.start(), scope),
                bound(slice.stop(), scope),
                bound(slice.step(), scope));
    }

    private @Nullable Long bound(@Nullable Expression expression, Scope scope) {
        if (expression == null) {
            return null;
        }
        return switch (evaluate(expression, scope)) {
            case Long number -> number;
            case PyNone none -> null;
            default ->
                    throw ChatTemplateException.failed(
                            "render chat template: the bounds of a slice must be ints");
        };
    }

    private Object call(Expression.Call call, Scope scope) {
        Object function = evaluate(call.function(), scope);
        if (function instanceof PyFunction callable) {
            String name =
                    switch (call.function()) {
                        case Expression.Name n -> n.name();
                        case Expression.Attribute a -> a.name();
                        default -> "function";
                    };
            return callable.call(arguments(name, call.arguments(), scope));
        }
        if (function instanceof PyUndefined undefined) {
            throw undefined.failure();
        }
        throw ChatTemplateException.failed(
                "render chat template: " + PyText.typeName(function) + " is not callable");
    }

    private CallArguments arguments(String callee, Expression.Arguments given, Scope scope) {
        Map<String, Object> named = new LinkedHashMap<>();
        given.named().forEach((name, value) -> named.put(name, evaluate(value, scope)));
        return new CallArguments(callee, evaluateAll(given.positional(), scope), named);
    }

    private Object comparison(Expression.Comparison comparison, Scope scope) {
        Object left = evaluate(comparison.first(), scope);
        for (Expression.Link link : comparison.links()) {
            Object right = evaluate(link.right(), scope);
            boolean holds =
                    switch (link.operator()) {
                        case "==" -> PyOperators.equal(left, right, budget);
                        case "!=" -> !PyOperators.equal(left, right, budget);
                        case "<" -> PyOperators.compare(left, right, budget) < 0;
                        case "<=" -> PyOperators.compare(left, right, budget) <= 0;
                        case ">" -> PyOperators.compare(left, right, budget) > 0;
                        case ">=" -> PyOperators.compare(left, right, budget) >= 0;
                        case "in" -> PyOperators.contains(right, left, budget);
                        default -> !PyOperators.contains(right, left, budget);
                    };
            if (!holds) {
                return false;
            }
            left = right;
        }
        return true;
    }

    private Object conditional(Expression.Conditional conditional, Scope scope) {
        if (isTrue(conditional.condition(), scope)) {
            return evaluate(conditional.then(), scope);
        }
        return conditional.otherwise() == null
                ? new PyUndefined("the inline if was false and has no else")
                : evaluate(conditional.otherwise(), scope);
    }
}
