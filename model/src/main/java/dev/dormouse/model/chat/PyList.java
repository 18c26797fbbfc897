package dev.dormouse.model.chat;

import java.util.Collection;
import java.util.Collections;
import java.util.List;

/** A list or a tuple; like everything but namespaces it does not change. */
final class PyList {
    private static final int MAX_DEPTH = 50;

    private final List<Object> items;
    private final boolean tuple;
    private final int depth;

    private PyList(List<Object> items, boolean tuple) {
        this.items = Collections.unmodifiableList(items);
        this.tuple = tuple;
        this.depth = depthAbove(items);
    }

    static PyList list(List<Object> items) {
        return new PyList(items, false);
    }

    static PyList tuple(List<Object> items) {
        return new PyList(items, true);
    }

    /** The depth of a container of these values, which recursion over it costs. */
    static int depthAbove(Collection<Object> values) {
        int deepest = 0;
        for (Object value : values) {
            if (value instanceof PyList list) {
                deepest = Math.max(deepest, list.depth);
            } else if (value instanceof PyDict dict) {
                deepest = Math.max(deepest, dict.depth());
            }
        }
        if (deepest >= MAX_DEPTH) {
            throw ChatTemplateException.failed(
                    "render chat template: lists nest deeper than the limit of " + MAX_DEPTH);
        }
        return deepest + 1;
    }

    List<Object> items() {
        return items;
    }

    boolean isTuple() {
        return tuple;
    }
}
