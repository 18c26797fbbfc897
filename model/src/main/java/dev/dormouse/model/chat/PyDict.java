package dev.dormouse.model.chat;

import java.util.Collections;
import java.util.Map;

/** A dictionary in order of insertion; it does not change. Its keys are strings and numbers. */
final class PyDict {
    private final Map<Object, Object> entries;
    private final int depth;

    PyDict(Map<Object, Object> entries) {
        this.entries = Collections.unmodifiableMap(entries);
        this.depth = PyList.depthAbove(entries.values());
    }

    Map<Object, Object> entries() {
        return entries;
    }

    int depth() {
        return depth;
    }

    /** Refuses a value that cannot be a key here. */
    static Object key(Object value) {
        return switch (value) {
            case String s -> s;
            case Long l -> l;
            case Boolean b -> b;
            case PyNone none -> none;
            default ->
                    throw ChatTemplateException.failed(
                            "render chat template: "
                                    + PyText.typeName(value)
                                    + " is no key for a dict");
        };
    }
}
