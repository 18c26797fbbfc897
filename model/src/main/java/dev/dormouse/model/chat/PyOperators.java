package dev.dormouse.model.chat;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Python's operators on a template's values. */
final class PyOperators {
    private PyOperators() {}

    static boolean isTrue(Object value) {
        return switch (value) {
            case Boolean b -> b;
            case String s -> !s.isEmpty();
            case Long l -> l != 0;
            case Double d -> d != 0;
            case PyNone none -> false;
            case PyUndefined undefined -> false;
            case PyList list -> !list.items().isEmpty();
            case PyDict dict -> !dict.entries().isEmpty();
            default -> true;
        };
    }

    /** A number as itself, a bool as 0 or 1, anything else as null. */
    static @Nullable Number number(Object value) {
        return switch (value) {
            case Boolean b -> b ? 1L : 0L;
            case Long l -> l;
            case Double d -> d;
            default -> null;
        };
    }

    static boolean equal(Object left, Object right, Budget budget) {
        budget.step();
        @Nullable Number a = number(left);
        @Nullable Number b = number(right);
        if (a != null && b != null) {
            return (a instanceof Long && b instanceof Long)
                    ? a.longValue() == b.longValue()
                    : a.doubleValue() == b.doubleValue();
        }
        if (left instanceof PyList a2 && right instanceof PyList b2) {
            return a2.isTuple() == b2.isTuple() && equalItems(a2.items(), b2.items(), budget);
        }
        if (left instanceof PyDict a2 && right instanceof PyDict b2) {
            if (!a2.entries().keySet().equals(b2.entries().keySet())) {
                return false;
            }
            for (Map.Entry<Object, Object> entry : a2.entries().entrySet()) {
                Object other = Objects.requireNonNull(b2.entries().get(entry.getKey()));
                if (!equal(entry.getValue(), other, budget)) {
                    return false;
                }
            }
            return true;
        }
        if (left instanceof String s && right instanceof String t && s.length() == t.length()) {
            budget.spend(s.length());
        }
        return left instanceof PyUndefined ? right instanceof PyUndefined : left.equals(right);
    }

    private static boolean equalItems(List<Object> left, List<Object> right, Budget budget) {
        if (left.size() != right.size()) {
            return false;
        }
        for (int i = 0; i < left.size(); i++) {
            if (!equal(left.get(i), right.get(i), budget)) {
                return false;
            }
        }
        return true;
    }

    /** Negative, zero or positive, as {@code left} sorts before, with or after {@code right}. */
    static int compare(Object left, Object right, Budget budget) {
        budget.step();
        @Nullable Number a = number(left);
        @Nullable Number b = number(right);
        if (a != null && b != null) {
            return compareNumbers(a, b);
        }
        if (left instanceof String s && right instanceof String t) {
            budget.spend(Math.min(s.length(), t.length()));
            return Arrays.compare(s.codePoints().toArray(), t.codePoints().toArray());
        }
        if (left instanceof PyList s && right instanceof PyList t) {
            int common = Math.min(s.items().size(), t.items().size());
            for (int i = 0; i < common; i++) {
                if (!equal(s.items().get(i), t.items().get(i), budget)) {
                    return compare(s.items().get(i), t.items().get(i), budget);
                }
            }
            return Integer.compare(s.items().size(), t.items().size());
        }
        throw mismatch("<", left, right);
    }

    /** Exact, so that the order of mixed ints and floats is one that a sort can rely on. */
    private static int compareNumbers(Number a, Number b) {
        if (a instanceof Long && b instanceof Long) {
            return Long.compare(a.longValue(), b.longValue());
        }
        double x = a.doubleValue();
        double y = b.doubleValue();
        if (Double.isFinite(x) && Double.isFinite(y)) {
            return exact(a).compareTo(exact(b));
        }
        return Double.compare(x, y);
    }

    private static BigDecimal exact(Number number) {
        return number instanceof Long integer
                ? BigDecimal.valueOf(integer)
                : new BigDecimal(number.doubleValue());
    }

    static boolean contains(Object container, Object item, Budget budget) {
        return switch (container) {
            case String text -> {
                if (item instanceof String part) {
                    budget.spend(text.length());
                    yield text.contains(part);
                }
                throw mismatch("in", item, container);
            }
            case PyDict dict -> dict.entries().containsKey(PyDict.key(item));
            default -> {
                for (Object candidate : iterate(container, budget)) {
                    if (equal(candidate, item, budget)) {
                        yield true;
                    }
                }
                yield false;
            }
        };
    }

    /** The values that a loop over this one sees: items, keys, or characters. */
    static List<Object> iterate(Object value, Budget budget) {
        List<Object> items =
                switch (value) {
                    case PyList list -> list.items();
                    case PyDict dict -> new ArrayList<>(dict.entries().keySet());
                    case String text ->
                            new ArrayList<>(
                                    text.codePoints().mapToObj(Character::toString).toList());
                    case PyUndefined undefined -> List.of();
                    default ->
                            throw ChatTemplateException.failed(
                                    "render chat template: "
                                            + PyText.typeName(value)
                                            + " is not iterable");
                };
        budget.steps(items.size());
        return items;
    }

    static long length(Object value, Budget budget) {
        return switch (value) {
            case PyList list -> list.items().size();
            case PyDict dict -> dict.entries().size();
            case String text -> {
                budget.spend(text.length());
                yield text.codePointCount(0, text.length());
            }
            case PyUndefined undefined -> 0;
            default ->
                    throw ChatTemplateException.failed(
                            "render chat template: " + PyText.typeName(value) + " has no length");
        };
    }

    static Object arithmetic(String operator, Object left, Object right, Budget budget) {
        @Nullable Number a = number(left);
        @Nullable Number b = number(right);
        if (a != null && b != null) {
            return a instanceof Long x && b instanceof Long y
                    ? integers(operator, x, y)
                    : reals(operator, a.doubleValue(), b.doubleValue());
        }
        if (operator.equals("+")) {
            if (left instanceof String s && right instanceof String t) {
                budget.spend((long) s.length() + t.length());
                return s + t;
            }
            if (left instanceof PyList s
                    && right instanceof PyList t
                    && s.isTuple() == t.isTuple()) {
                budget.steps((long) s.items().size() + t.items().size());
                List<Object> joined = new ArrayList<>(s.items());
                joined.addAll(t.items());
                return s.isTuple() ? PyList.tuple(joined) : PyList.list(joined);
            }
        }
        if (operator.equals("*")) {
            if (left instanceof String text && right instanceof Long times) {
                int count = Math.toIntExact(Math.clamp(times, 0L, Integer.MAX_VALUE));
                budget.spend((long) text.length() * count);
                return text.repeat(count);
            }
            if (left instanceof Long && right instanceof String) {
                return arithmetic(operator, right, left, budget);
            }
        }
        throw mismatch(operator, left, right);
    }

    private static Object integers(String operator, long a, long b) {
        try {
            return switch (operator) {
                case "+" -> Math.addExact(a, b);
                case "-" -> Math.subtractExact(a, b);
                case "*" -> Math.multiplyExact(a, b);
                case "//" -> Math.floorDiv(a, b);
                case "%" -> Math.floorMod(a, b);
                case "/" -> {
                    if (b == 0) {
                        throw new ArithmeticException("division by zero");
                    }
                    yield (double) a / (double) b;
                }
                default -> b < 0 ? (Object) Math.pow((double) a, (double) b) : (Object) power(a, b);
            };
        } catch (ArithmeticException e) {
            throw ChatTemplateException.failed(
                    "render chat template: %d %s %d: %s".formatted(a, operator, b, e.getMessage()));
        }
    }

    private static long power(long base, long exponent) {
        if (base == 0 || base == 1) {
            return exponent == 0 ? 1 : base;
        }
        if (base == -1) {
            return (exponent & 1) == 0 ? 1 : -1;
        }
        long result = 1;
        // Any other base leaves 64 bits, and thus this loop, after 63 rounds at most.
        for (long i = 0; i < exponent; i++) {
            result = Math.multiplyExact(result, base);
        }
        return result;
    }

    private static Object reals(String operator, double a, double b) {
        if (b == 0 && "//%".contains(operator)) {
            throw ChatTemplateException.failed("render chat template: division of a float by zero");
        }
        return switch (operator) {
            case "+" -> a + b;
            case "-" -> a - b;
            case "*" -> a * b;
            case "/" -> a / b;
            case "//" -> Math.floor(a / b);
            case "%" -> a - Math.floor(a / b) * b;
            default -> Math.pow(a, b);
        };
    }

    /** {@code object[index]}; what does not exist is undefined. */
    static Object item(Object object, Object index, Budget budget) {
        if (object instanceof PyUndefined undefined) {
            throw undefined.failure();
        }
        if (object instanceof PyDict dict) {
            @Nullable Object value = dict.entries().get(PyDict.key(index));
            return value != null ? value : missing(object, index);
        }
        if (index instanceof String name) {
            return object instanceof PyNamespace namespace
                    ? namespace.fields().getOrDefault(name, missing(object, name))
                    : missing(object, name);
        }
        if (index instanceof Long position) {
            if (object instanceof PyList list) {
                long at = position < 0 ? position + list.items().size() : position;
                return at >= 0 && at < list.items().size()
                        ? list.items().get((int) at)
                        : missing(object, position);
            }
            if (object instanceof String text) {
                budget.spend(text.length());
                int[] characters = text.codePoints().toArray();
                long at = position < 0 ? position + characters.length : position;
                return at >= 0 && at < characters.length
                        ? Character.toString(characters[(int) at])
                        : missing(object, position);
            }
        }
        return missing(object, index);
    }

    static PyUndefined missing(Object object, Object index) {
        String type = PyText.typeName(object);
        return new PyUndefined(
                index instanceof String name
                        ? type + " has no attribute '" + name + "'"
                        : type + " has no element " + index);
    }

    /** {@code object[start:stop:step]}, each bound null when absent. */
    static Object slice(
            Object object, @Nullable Long start, @Nullable Long stop, @Nullable Long step) {
        if (object instanceof String text) {
            StringBuilder out = new StringBuilder();
            for (Object c : sliced(characters(text), start, stop, step)) {
                out.append(c);
            }
            return out.toString();
        }
        if (object instanceof PyList list) {
            List<Object> items = sliced(list.items(), start, stop, step);
            return list.isTuple() ? PyList.tuple(items) : PyList.list(items);
        }
        if (object instanceof PyUndefined undefined) {
            throw undefined.failure();
        }
        throw ChatTemplateException.failed(
                "render chat template: " + PyText.typeName(object) + " cannot be sliced");
    }

    private static List<Object> characters(String text) {
        return new ArrayList<>(text.codePoints().mapToObj(Character::toString).toList());
    }

    private static List<Object> sliced(
            List<Object> items, @Nullable Long start, @Nullable Long stop, @Nullable Long step) {
        long stride = step == null ? 1 : step;
        if (stride == 0) {
            throw ChatTemplateException.failed("render chat template: the step of a slice is 0");
        }
        int size = items.size();
        long lowest = stride > 0 ? 0 : -1;
        long highest = stride > 0 ? size : size - 1;
        long from = bound(start, stride > 0 ? lowest : highest, size, lowest, highest);
        long to = bound(stop, stride > 0 ? highest : lowest, size, lowest, highest);
        List<Object> out = new ArrayList<>();
        // A stride beyond the size takes one item; cutting it there keeps the sum in range.
        long move = Math.clamp(stride, -size - 1L, size + 1L);
        for (long i = from; stride > 0 ? i < to : i > to; i += move) {
            out.add(items.get((int) i));
        }
        return out;
    }

    private static long bound(
            @Nullable Long given, long byDefault, int size, long lowest, long highest) {
        if (given == null) {
            return byDefault;
        }
        return Math.clamp(given < 0 ? given + size : given, lowest, highest);
    }

    private static ChatTemplateException mismatch(String operator, Object left, Object right) {
        for (Object side : List.of(left, right)) {
            if (side instanceof PyUndefined undefined) {
                return undefined.failure();
            }
        }
        return ChatTemplateException.failed(
                "render chat template: operator '%s' does not apply to %s and %s"
                        .formatted(operator, PyText.typeName(left), PyText.typeName(right)));
    }
}
