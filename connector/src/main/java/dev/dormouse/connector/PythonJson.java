package dev.dormouse.connector;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * JSON text exactly as Python's {@code json.dumps(value, sort_keys=True)} writes it: sorted keys, a
 * space behind each separator, everything outside printable ASCII escaped.
 */
final class PythonJson {
    private PythonJson() {}

    static String dumps(@Nullable Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, @Nullable Object value) {
        switch (value) {
            case null -> out.append("null");
            case Boolean bool -> out.append(bool.booleanValue());
            case Integer integer -> out.append(integer.intValue());
            case Long integer -> out.append(integer.longValue());
            case String string -> quote(out, string);
            case List<?> list -> {
                String separator = "[";
                for (Object element : list) {
                    out.append(separator);
                    write(out, element);
                    separator = ", ";
                }
                out.append(list.isEmpty() ? "[]" : "]");
            }
            case Map<?, ?> map -> {
                Map<String, @Nullable Object> sorted = new TreeMap<>();
                map.forEach((key, element) -> sorted.put((String) key, element));
                String separator = "{";
                for (Map.Entry<String, @Nullable Object> entry : sorted.entrySet()) {
                    out.append(separator);
                    quote(out, entry.getKey());
                    out.append(": ");
                    write(out, entry.getValue());
                    separator = ", ";
                }
                out.append(sorted.isEmpty() ? "{}" : "}");
            }
            default ->
                    throw new IllegalArgumentException(
                            "JSON: no rule for a value of " + value.getClass());
        }
    }

    private static void quote(StringBuilder out, String string) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                case '\b' -> out.append("\\b");
                case '\f' -> out.append("\\f");
                default -> {
                    if (c < ' ' || c > '~') {
                        out.append(String.format("\\u%04x", (int) c));
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append('"');
    }
}
