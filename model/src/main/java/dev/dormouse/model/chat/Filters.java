package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The filters after a bar. */
final class Filters {
    private final Budget budget;
    private final Tests tests;

    Filters(Budget budget, Tests tests) {
        this.budget = budget;
        this.tests = tests;
    }

    Object apply(Object input, CallArguments arguments) {
        return switch (arguments.callee()) {
            case "default", "d" -> fallback(input, arguments);
            case "length", "count" -> PyOperators.length(input, budget);
            case "string" -> text(input);
            case "safe" -> input;
            case "trim" -> {
                arguments.accept("chars");
                yield arguments.find(0, "chars") == null
                        ? PyStrings.strip(text(input), true, true)
                        : PyStrings.strip(
                                text(input), arguments.requireString(0, "chars"), true, true);
            }
            case "upper" -> PyStrings.upper(text(input));
            case "lower" -> PyStrings.lower(text(input));
            case "capitalize" -> PyStrings.capitalize(text(input));
            case "title" -> title(text(input));
            case "replace" -> PyMethods.replace(text(input), arguments, budget);
            case "indent" -> indent(text(input), arguments);
            case "tojson" -> {
                arguments.accept("indent");
                @Nullable Object indent = arguments.find(0, "indent");
                boolean none = indent == null || indent == PyNone.NONE;
                long width = none ? -1 : arguments.integer(0, "indent", -1);
                yield PyText.json(input, (int) Math.clamp(width, -1L, 64L), budget);
            }
            case "int" -> integer(input, arguments);
            case "float" -> real(input, arguments);
            case "abs" -> absolute(input, arguments);
            case "list" -> PyList.list(items(input));
            case "first" -> end(items(input), true);
            case "last" -> end(items(input), false);
            case "reverse" -> reverse(input);
            case "join" -> join(input, arguments);
            case "items" ->
                    switch (input) {
                        case PyDict dict -> PyMethods.items(dict, budget);
                        case PyUndefined undefined -> PyList.list(List.of());
                        default -> throw arguments.failure("needs a dict");
                    };
            case "dictsort" -> dictsort(input, arguments);
            case "sort" -> sort(input, arguments);
            case "unique" -> unique(items(input));
            case "map" -> map(input, arguments);
            case "select", "reject" -> select(input, arguments, false);
            case "selectattr", "rejectattr" -> select(input, arguments, true);
            default -> throw arguments.failure("is no supported filter");
        };
    }

    private String text(Object value) {
        String text = PyText.str(value, budget);
        budget.spend(text.length());
        return text;
    }

    private List<Object> items(Object value) {
        return PyOperators.iterate(value, budget);
    }

    /** As jinja2's lazy filters read their input: what is false has no items, even none itself. */
    private List<Object> itemsOrNone(Object value) {
        return PyOperators.isTrue(value) ? items(value) : List.of();
    }

    private static Object fallback(Object input, CallArguments arguments) {
        arguments.accept("default_value", "boolean");
        boolean use =
                input instanceof PyUndefined
                        || (arguments.bool(1, "boolean") && !PyOperators.isTrue(input));
        @Nullable Object given = arguments.find(0, "default_value");
        return use ? (given != null ? given : "") : input;
    }

    /** As the filter, whose words end at hyphens, brackets and white space only. */
    private static String title(String text) {
        StringBuilder out = new StringBuilder(text.length());
        boolean start = true;
        for (int c : text.codePoints().toArray()) {
            out.appendCodePoint(start ? Character.toUpperCase(c) : Character.toLowerCase(c));
            start = PyStrings.isSpace(c) || "-({[<".indexOf(c) >= 0;
        }
        return out.toString();
    }

    private String indent(String text, CallArguments arguments) {
        arguments.accept("width", "first", "blank");
        String margin =
                arguments.find(0, "width") instanceof String given
                        ? given
                        : " ".repeat(Math.clamp(arguments.integer(0, "width", 4), 0, 1024));
        boolean blank = arguments.bool(2, "blank");
        StringBuilder out = new StringBuilder(arguments.bool(1, "first") ? margin : "");
        List<String> lines = PyStrings.lines(text + "\n");
        for (int i = 0; i < lines.size(); i++) {
            boolean indented = i > 0 && (blank || !lines.get(i).isEmpty());
            budget.spend((long) margin.length() + lines.get(i).length());
            out.append(i > 0 ? "\n" : "").append(indented ? margin : "").append(lines.get(i));
        }
        return out.toString();
    }

    private static Object integer(Object input, CallArguments arguments) {
        arguments.accept("default");
        long byDefault = arguments.integer(0, "default", 0);
        try {
            @Nullable Number number = PyOperators.number(input);
            if (number != null) {
                return number.longValue();
            }
            if (!(input instanceof String text)) {
                return byDefault;
            }
            String digits = text.strip();
            return digits.matches("[+-]?[0-9]+")
                    ? Long.parseLong(digits)
                    : (long) Double.parseDouble(digits);
        } catch (NumberFormatException e) {
            return byDefault;
        }
    }

    private static Object real(Object input, CallArguments arguments) {
        arguments.accept("default");
        @Nullable Number number = PyOperators.number(input);
        try {
            if (number != null) {
                return number.doubleValue();
            }
            if (input instanceof String text) {
                return Double.parseDouble(text.strip());
            }
        } catch (NumberFormatException e) {
            // The default then.
        }
        @Nullable Object given = arguments.find(0, "default");
        return given != null ? given : 0.0;
    }

    private static Object absolute(Object input, CallArguments arguments) {
        @Nullable Number number = PyOperators.number(input);
        return switch (number) {
            case Long l -> Math.abs(l);
            case Double d -> Math.abs(d);
            case null, default -> throw arguments.failure("needs a number");
        };
    }

    private static Object end(List<Object> items, boolean first) {
        if (items.isEmpty()) {
            return new PyUndefined(
                    "no " + (first ? "first" : "last") + " item, sequence was empty");
        }
        return first ? items.getFirst() : items.getLast();
    }

    private Object reverse(Object input) {
        if (input instanceof String text) {
            budget.spend(text.length());
            return new StringBuilder(text).reverse().toString();
        }
        List<Object> reversed = new ArrayList<>(items(input));
        Collections.reverse(reversed);
        return PyList.list(reversed);
    }

    private String join(Object input, CallArguments arguments) {
        arguments.accept("d", "attribute");
        @Nullable Object separator = arguments.find(0, "d");
        @Nullable Object path = arguments.find(1, "attribute");
        List<Object> parts = items(input);
        if (path != null) {
            parts = parts.stream().map(item -> follow(item, path)).toList();
        }
        return PyMethods.join(separator == null ? "" : text(separator), parts, budget);
    }

    /** The field at a path such as {@code function.name}. */
    private Object follow(Object item, Object path) {
        if (!(path instanceof String names)) {
            return PyOperators.item(item, path, budget);
        }
        Object value = item;
        for (Object name : PyStrings.split(names, ".", -1)) {
            budget.step();
            boolean number = ((String) name).matches("[0-9]{1,9}");
            value = PyOperators.item(value, number ? Long.parseLong((String) name) : name, budget);
        }
        return value;
    }

    private Object dictsort(Object input, CallArguments arguments) {
        arguments.accept("case_sensitive");
        if (!(input instanceof PyDict dict)) {
            throw arguments.failure("needs a dict");
        }
        boolean caseSensitive = arguments.bool(0, "case_sensitive");
        List<Object> pairs = new ArrayList<>(PyMethods.items(dict, budget).items());
        pairs.sort(order(pair -> ((PyList) pair).items().getFirst(), caseSensitive));
        return PyList.list(pairs);
    }

    private Object sort(Object input, CallArguments arguments) {
        arguments.accept("reverse", "case_sensitive", "attribute");
        List<Object> sorted = new ArrayList<>(items(input));
        @Nullable Object path = arguments.find(2, "attribute");
        Comparator<Object> order =
                order(
                        item -> path == null ? item : follow(item, path),
                        arguments.bool(1, "case_sensitive"));
        // A reversed comparator keeps equal items in their order, as Python's reverse does.
        sorted.sort(arguments.bool(0, "reverse") ? order.reversed() : order);
        return PyList.list(sorted);
    }

    private Comparator<Object> order(UnaryOperator<Object> key, boolean caseSensitive) {
        return (a, b) ->
                PyOperators.compare(
                        folded(key.apply(a), caseSensitive),
                        folded(key.apply(b), caseSensitive),
                        budget);
    }

    private static Object folded(Object value, boolean caseSensitive) {
        return value instanceof String text && !caseSensitive ? PyStrings.lower(text) : value;
    }

    private Object unique(List<Object> items) {
        List<Object> kept = new ArrayList<>();
        for (Object item : items) {
            Object key = folded(item, false);
            if (kept.stream().noneMatch(k -> PyOperators.equal(folded(k, false), key, budget))) {
                kept.add(item);
            }
        }
        return PyList.list(kept);
    }

    private Object map(Object input, CallArguments arguments) {
        @Nullable Object path = arguments.named().get("attribute");
        List<Object> mapped = new ArrayList<>();
        for (Object item : itemsOrNone(input)) {
            if (path != null) {
                Object value = follow(item, path);
                @Nullable Object byDefault = arguments.named().get("default");
                boolean missing = value instanceof PyUndefined && byDefault != null;
                mapped.add(missing ? byDefault : value);
            } else {
                String filter = arguments.requireString(0, "filter");
                mapped.add(apply(item, rest(filter, arguments, 1)));
            }
        }
        return PyList.list(mapped);
    }

    private Object select(Object input, CallArguments arguments, boolean byAttribute) {
        boolean wanted = arguments.callee().startsWith("select");
        int testIndex = byAttribute ? 1 : 0;
        List<Object> kept = new ArrayList<>();
        for (Object item : itemsOrNone(input)) {
            Object value = byAttribute ? follow(item, arguments.require(0, "attribute")) : item;
            boolean holds =
                    arguments.positional().size() <= testIndex
                            ? PyOperators.isTrue(value)
                            : tests.apply(
                                    value,
                                    rest(
                                            arguments.requireString(testIndex, "test"),
                                            arguments,
                                            testIndex + 1));
            if (holds == wanted) {
                kept.add(item);
            }
        }
        return PyList.list(kept);
    }

    private static CallArguments rest(String callee, CallArguments arguments, int from) {
        List<Object> positional = arguments.positional();
        return new CallArguments(
                callee, positional.subList(from, positional.size()), arguments.named());
    }
}
