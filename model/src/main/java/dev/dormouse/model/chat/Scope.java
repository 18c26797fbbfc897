package dev.dormouse.model.chat;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Variables that live as long as a block; inner ones hide outer ones and do not change them. */
final class Scope {
    private final @Nullable Scope outer;
    private final Map<String, Object> variables = new HashMap<>();

    Scope(@Nullable Scope outer) {
        this.outer = outer;
    }

    void set(String name, Object value) {
        variables.put(name, value);
    }

    Object get(String name) {
        for (@Nullable Scope scope = this; scope != null; scope = scope.outer) {
            @Nullable Object value = scope.variables.get(name);
            if (value != null) {
                return value;
            }
        }
        return new PyUndefined("'" + name + "' is undefined");
    }
}
