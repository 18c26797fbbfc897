package dev.dormouse.model.chat;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The evaluated arguments of a call to something built in. */
record CallArguments(String callee, List<Object> positional, Map<String, Object> named) {
    /** Refuses arguments beyond these parameters. */
    void accept(String... parameters) {
        Set<String> known = Set.of(parameters);
        if (positional.size() > parameters.length) {
            throw failure("takes at most " + parameters.length + " arguments");
        }
        for (String name : named.keySet()) {
            if (!known.contains(name)) {
                throw failure("does not support the argument '" + name + "'");
            }
        }
    }

    /** The argument at that place or of that name, or null. */
    @Nullable Object find(int index, String name) {
        return index < positional.size() ? positional.get(index) : named.get(name);
    }

    Object require(int index, String name) {
        @Nullable Object value = find(index, name);
        if (value == null) {
            throw failure("needs the argument '" + name + "'");
        }
        return value;
    }

    String requireString(int index, String name) {
        if (require(index, name) instanceof String text) {
            return text;
        }
        throw failure("needs a str for '" + name + "'");
    }

    long integer(int index, String name, long byDefault) {
        @Nullable Object value = find(index, name);
        if (value == null) {
            return byDefault;
        }
        if (value instanceof Long number) {
            return number;
        }
        throw failure("needs an int for '" + name + "'");
    }

    boolean bool(int index, String name) {
        @Nullable Object value = find(index, name);
        return value != null && PyOperators.isTrue(value);
    }

    ChatTemplateException failure(String what) {
        return ChatTemplateException.failed("render chat template: '" + callee + "' " + what);
    }
}
