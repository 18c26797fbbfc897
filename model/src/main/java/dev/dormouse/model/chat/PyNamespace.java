package dev.dormouse.model.chat;

import java.util.HashMap;
import java.util.Map;

/** The one kind of object that a template can change: {@code namespace(...)}. */
final class PyNamespace {
    private final Map<String, Object> fields = new HashMap<>();

    PyNamespace(Map<String, Object> fields) {
        this.fields.putAll(fields);
    }

    Map<String, Object> fields() {
        return fields;
    }
}
