package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Makes template values of plain Java values. */
final class PyValues {
    private PyValues() {}

    /** Takes texts, numbers, truth values, null, and lists and maps of them. */
    static Object of(@Nullable Object value) {
        return switch (value) {
            case null -> PyNone.NONE;
            case String text -> text;
            case Boolean truth -> truth;
            case Integer number -> (long) number;
            case Long number -> number;
            case Number number -> number.doubleValue();
            case List<?> list -> {
                List<Object> items = new ArrayList<>();
                list.forEach(item -> items.add(of(item)));
                yield PyList.list(items);
            }
            case Map<?, ?> map -> {
                Map<Object, Object> entries = new LinkedHashMap<>();
                map.forEach((key, item) -> entries.put(String.valueOf(key), of(item)));
                yield new PyDict(entries);
            }
            default ->
                    throw new IllegalArgumentException(
                            "template value: a "
                                    + value.getClass().getName()
                                    + " is neither text, number, truth value, list nor map");
        };
    }
}
