package dev.dormouse.model.chat;

import org.jspecify.annotations.Nullable;

/** The tests after {@code is}. */
final class Tests {
    private final Budget budget;

    Tests(Budget budget) {
        this.budget = budget;
    }

    boolean apply(Object value, CallArguments arguments) {
        return switch (arguments.callee()) {
            case "defined" -> !(value instanceof PyUndefined);
            case "undefined" -> value instanceof PyUndefined;
            case "none" -> value == PyNone.NONE;
            case "string" -> value instanceof String;
            case "number" -> PyOperators.number(value) != null;
            case "integer" -> value instanceof Long;
            case "float" -> value instanceof Double;
            case "boolean" -> value instanceof Boolean;
            case "true" -> Boolean.TRUE.equals(value);
            case "false" -> Boolean.FALSE.equals(value);
            case "mapping" -> value instanceof PyDict;
            case "sequence", "iterable" ->
                    value instanceof PyList
                            || value instanceof PyDict
                            || value instanceof String
                            || value instanceof PyUndefined;
            case "callable" -> value instanceof PyFunction;
            case "odd" -> remainder(value, 2, arguments) == 1;
            case "even" -> remainder(value, 2, arguments) == 0;
            case "divisibleby" -> remainder(value, arguments.integer(0, "num", 0), arguments) == 0;
            case "eq", "equalto", "sameas" ->
                    PyOperators.equal(value, arguments.require(0, "other"), budget);
            case "ne" -> !PyOperators.equal(value, arguments.require(0, "other"), budget);
            case "lt", "lessthan" -> compare(value, arguments) < 0;
            case "le" -> compare(value, arguments) <= 0;
            case "gt", "greaterthan" -> compare(value, arguments) > 0;
            case "ge" -> compare(value, arguments) >= 0;
            case "in" -> PyOperators.contains(arguments.require(0, "seq"), value, budget);
            default -> throw arguments.failure("is no supported test");
        };
    }

    private int compare(Object value, CallArguments arguments) {
        return PyOperators.compare(value, arguments.require(0, "other"), budget);
    }

    private static long remainder(Object value, long divisor, CallArguments arguments) {
        @Nullable Number number = PyOperators.number(value);
        if (number instanceof Long dividend && divisor != 0) {
            return Math.floorMod(dividend, divisor);
        }
        throw arguments.failure("needs an int and a divisor other than 0");
    }
}
