package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** The methods of strings and dicts that do not change them. */
final class PyMethods {
    private PyMethods() {}

    /** {@code object.name}; what does not exist is undefined. */
    static Object attribute(Object object, String name, Budget budget) {
        return switch (object) {
            case PyUndefined undefined -> throw undefined.failure();
            case LoopState loop -> loop.attribute(name);
            case String text -> {
                // Each method reads its string once, or makes one of about its length.
                budget.spend(text.length());
                @Nullable PyFunction method = ofString(text, name, budget);
                yield method != null ? method : PyOperators.missing(object, name);
            }
            case PyDict dict -> {
                @Nullable PyFunction method = ofDict(dict, name, budget);
                yield method != null ? method : PyOperators.item(object, name, budget);
            }
            default -> PyOperators.item(object, name, budget);
        };
    }

    private static @Nullable PyFunction ofDict(PyDict dict, String name, Budget budget) {
        return switch (name) {
            case "items" -> arguments -> items(dict, budget);
            case "keys" -> arguments -> PyList.list(new ArrayList<>(dict.entries().keySet()));
            case "values" -> arguments -> PyList.list(new ArrayList<>(dict.entries().values()));
            case "get" ->
                    arguments -> {
                        arguments.accept("key", "default");
                        Object key = PyDict.key(arguments.require(0, "key"));
                        @Nullable Object value = dict.entries().get(key);
                        if (value != null) {
                            return value;
                        }
                        @Nullable Object fallback = arguments.find(1, "default");
                        return fallback != null ? fallback : PyNone.NONE;
                    };
            default -> null;
        };
    }

    static PyList items(PyDict dict, Budget budget) {
        List<Object> pairs = new ArrayList<>();
        budget.steps(dict.entries().size());
        for (Map.Entry<Object, Object> entry : dict.entries().entrySet()) {
            pairs.add(PyList.tuple(List.of(entry.getKey(), entry.getValue())));
        }
        return PyList.list(pairs);
    }

    private static @Nullable PyFunction ofString(String text, String name, Budget budget) {
        return switch (name) {
            case "strip" -> arguments -> strip(text, arguments, true, true);
            case "lstrip" -> arguments -> strip(text, arguments, true, false);
            case "rstrip" -> arguments -> strip(text, arguments, false, true);
            case "upper" -> arguments -> PyStrings.upper(text);
            case "lower" -> arguments -> PyStrings.lower(text);
            case "title" -> arguments -> PyStrings.title(text);
            case "capitalize" -> arguments -> PyStrings.capitalize(text);
            case "startswith" -> arguments -> affix(arguments, text::startsWith);
            case "endswith" -> arguments -> affix(arguments, text::endsWith);
            case "split" -> arguments -> split(text, arguments);
            case "splitlines" ->
                    arguments -> {
                        arguments.accept();
                        return PyList.list(new ArrayList<>(PyStrings.lines(text)));
                    };
            case "replace" -> arguments -> replace(text, arguments, budget);
            case "find" ->
                    arguments -> {
                        arguments.accept("sub");
                        int at = text.indexOf(arguments.requireString(0, "sub"));
                        return (long) (at < 0 ? at : text.codePointCount(0, at));
                    };
            case "count" ->
                    arguments -> {
                        arguments.accept("sub");
                        String part = arguments.requireString(0, "sub");
                        return part.isEmpty()
                                ? PyOperators.length(text, budget) + 1
                                : PyStrings.split(text, part, -1).size() - 1L;
                    };
            case "join" ->
                    arguments -> {
                        arguments.accept("iterable");
                        List<Object> parts =
                                PyOperators.iterate(arguments.require(0, "iterable"), budget);
                        return join(text, parts, budget);
                    };
            case "isdigit" ->
                    arguments -> !text.isEmpty() && text.codePoints().allMatch(Character::isDigit);
            default -> null;
        };
    }

    static String join(String separator, List<Object> parts, Budget budget) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < parts.size(); i++) {
            String part = PyText.str(parts.get(i), budget);
            budget.spend((long) separator.length() + part.length());
            out.append(i == 0 ? "" : separator).append(part);
        }
        return out.toString();
    }

    private static String strip(String text, CallArguments arguments, boolean left, boolean right) {
        arguments.accept("chars");
        @Nullable Object chars = arguments.find(0, "chars");
        return chars == null || chars == PyNone.NONE
                ? PyStrings.strip(text, left, right)
                : PyStrings.strip(text, arguments.requireString(0, "chars"), left, right);
    }

    private static boolean affix(CallArguments arguments, Predicate<String> matches) {
        arguments.accept("affix");
        if (arguments.require(0, "affix") instanceof PyList choices) {
            return choices.items().stream().anyMatch(c -> c instanceof String s && matches.test(s));
        }
        return matches.test(arguments.requireString(0, "affix"));
    }

    private static PyList split(String text, CallArguments arguments) {
        arguments.accept("sep", "maxsplit");
        long limit = arguments.integer(1, "maxsplit", -1);
        @Nullable Object separator = arguments.find(0, "sep");
        return PyList.list(
                separator == null || separator == PyNone.NONE
                        ? PyStrings.split(text, limit)
                        : PyStrings.split(text, arguments.requireString(0, "sep"), limit));
    }

    /** As {@code str.replace(old, new, count)}. */
    static String replace(String text, CallArguments arguments, Budget budget) {
        arguments.accept("old", "new", "count");
        String old = arguments.requireString(0, "old");
        String replacement = arguments.requireString(1, "new");
        long limit = arguments.integer(2, "count", -1);
        if (old.isEmpty()) {
            throw arguments.failure("does not support an empty text to replace");
        }
        List<Object> parts = PyStrings.split(text, old, limit);
        return join(replacement, parts, budget);
    }
}
