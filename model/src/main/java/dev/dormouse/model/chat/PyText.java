package dev.dormouse.model.chat;

import java.math.BigDecimal;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** How Python writes values: {@code str}, {@code repr} and {@code json.dumps}. */
final class PyText {
    private PyText() {}

    static String str(Object value, Budget budget) {
        return value instanceof String text ? text : repr(value, budget);
    }

    static String repr(Object value, Budget budget) {
        StringBuilder out = new StringBuilder();
        repr(value, out, budget);
        return out.toString();
    }

    private static void repr(Object value, StringBuilder out, Budget budget) {
        int before = out.length();
        budget.step();
        switch (value) {
            case String text -> quote(text, out);
            case Boolean b -> out.append(b ? "True" : "False");
            case Long number -> out.append(number.longValue());
            case Double number -> out.append(real(number));
            case PyNone none -> out.append("None");
            case PyUndefined undefined -> {
                // Empty, as jinja2 writes it.
            }
            case PyList list -> {
                boolean single = list.isTuple() && list.items().size() == 1;
                out.append(list.isTuple() ? '(' : '[');
                reprItems(list.items(), out, budget);
                out.append(single ? "," : "").append(list.isTuple() ? ')' : ']');
                return;
            }
            case PyDict dict -> {
                String separator = "{";
                for (Map.Entry<Object, Object> entry : dict.entries().entrySet()) {
                    out.append(separator);
                    repr(entry.getKey(), out, budget);
                    out.append(": ");
                    repr(entry.getValue(), out, budget);
                    separator = ", ";
                }
                out.append(dict.entries().isEmpty() ? "{}" : "}");
                return;
            }
            default ->
                    throw ChatTemplateException.failed(
                            "render chat template: " + typeName(value) + " cannot be printed");
        }
        budget.spend(out.length() - before);
    }

    private static void reprItems(List<Object> items, StringBuilder out, Budget budget) {
        Iterator<Object> iterator = items.iterator();
        while (iterator.hasNext()) {
            repr(iterator.next(), out, budget);
            out.append(iterator.hasNext() ? ", " : "");
        }
    }

    private static void quote(String text, StringBuilder out) {
        char quote = text.indexOf('\'') >= 0 && text.indexOf('"') < 0 ? '"' : '\'';
        out.append(quote);
        text.codePoints().forEach(c -> quoted(c, quote, out));
        out.append(quote);
    }

    private static void quoted(int c, char quote, StringBuilder out) {
        switch (c) {
            case '\n' -> out.append("\\n");
            case '\r' -> out.append("\\r");
            case '\t' -> out.append("\\t");
            case '\\' -> out.append("\\\\");
            default -> {
                if (c == quote) {
                    out.append('\\').append(quote);
                } else if (isPrintable(c)) {
                    out.appendCodePoint(c);
                } else if (c <= 0xff) {
                    out.append("\\x%02x".formatted(c));
                } else {
                    out.append((c <= 0xffff ? "\\u%04x" : "\\U%08x").formatted(c));
                }
            }
        }
    }

    private static boolean isPrintable(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.SURROGATE,
                    Character.PRIVATE_USE,
                    Character.UNASSIGNED,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR ->
                    false;
            case Character.SPACE_SEPARATOR -> c == ' ';
            default -> true;
        };
    }

    /** Shortest digits that read back the same, with an exponent below 1e-4 and from 1e16. */
    static String real(double value) {
        if (Double.isNaN(value)) {
            return "nan";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "inf" : "-inf";
        }
        if (value == 0) {
            return 1 / value < 0 ? "-0.0" : "0.0";
        }
        BigDecimal decimal = new BigDecimal(Double.toString(value)).stripTrailingZeros();
        int exponent = decimal.precision() - decimal.scale() - 1;
        if (exponent >= -4 && exponent < 16) {
            String plain = decimal.toPlainString();
            return decimal.scale() > 0 ? plain : plain + ".0";
        }
        String digits = decimal.unscaledValue().abs().toString();
        String fraction = digits.length() > 1 ? "." + digits.substring(1) : "";
        return (value < 0 ? "-" : "")
                + digits.charAt(0)
                + fraction
                + "e%s%02d".formatted(exponent < 0 ? "-" : "+", Math.abs(exponent));
    }

    /** As {@code json.dumps(value, ensure_ascii=False, indent=indent)}; −1 is no indent. */
    static String json(Object value, int indent, Budget budget) {
        StringBuilder out = new StringBuilder();
        json(value, indent, 0, out, budget);
        return out.toString();
    }

    private static void json(
            Object value, int indent, int level, StringBuilder out, Budget budget) {
        int before = out.length();
        budget.step();
        switch (value) {
            case String text -> jsonString(text, out);
            case Boolean b -> out.append(b.booleanValue());
            case Long number -> out.append(number.longValue());
            case Double number ->
                    out.append(
                            Double.isNaN(number) ? "NaN" : real(number).replace("inf", "Infinity"));
            case PyNone none -> out.append("null");
            case PyList list -> {
                String separator = "[";
                for (Object item : list.items()) {
                    out.append(separator);
                    newLine(indent, level + 1, out, budget);
                    json(item, indent, level + 1, out, budget);
                    separator = indent < 0 ? ", " : ",";
                }
                closeJson(list.items().isEmpty(), "[", "]", indent, level, out, budget);
                return;
            }
            case PyDict dict -> {
                String separator = "{";
                for (Map.Entry<Object, Object> entry : dict.entries().entrySet()) {
                    out.append(separator);
                    newLine(indent, level + 1, out, budget);
                    Object key = entry.getKey();
                    if (key instanceof String) {
                        json(key, indent, level + 1, out, budget);
                    } else {
                        out.append('"');
                        json(key, indent, level + 1, out, budget);
                        out.append('"');
                    }
                    out.append(": ");
                    json(entry.getValue(), indent, level + 1, out, budget);
                    separator = indent < 0 ? ", " : ",";
                }
                closeJson(dict.entries().isEmpty(), "{", "}", indent, level, out, budget);
                return;
            }
            default ->
                    throw ChatTemplateException.failed(
                            "render chat template: " + typeName(value) + " has no JSON form");
        }
        budget.spend(out.length() - before);
    }

    private static void closeJson(
            boolean empty,
            String open,
            String close,
            int indent,
            int level,
            StringBuilder out,
            Budget budget) {
        if (empty) {
            out.append(open);
        } else {
            newLine(indent, level, out, budget);
        }
        out.append(close);
    }

    private static void newLine(int indent, int level, StringBuilder out, Budget budget) {
        if (indent >= 0) {
            budget.spend((long) indent * level);
            out.append('\n').repeat(' ', indent * level);
        }
    }

    private static void jsonString(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                case '\f' -> out.append("\\f");
                case '\b' -> out.append("\\b");
                default -> {
                    if (c < 0x20) {
                        out.append("\\u%04x".formatted((int) c));
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append('"');
    }

    /** What jinja2 calls such a value in its messages. */
    static String typeName(Object value) {
        return switch (value) {
            case String s -> "'str object'";
            case Boolean b -> "'bool object'";
            case Long l -> "'int object'";
            case Double d -> "'float object'";
            case PyNone none -> "'None'";
            case PyUndefined undefined -> "an undefined value";
            case PyList list -> list.isTuple() ? "'tuple object'" : "'list object'";
            case PyDict dict -> "'dict object'";
            case PyNamespace namespace -> "'namespace object'";
            case LoopState loop -> "'loop object'";
            default -> "'function object'";
        };
    }
}
