package dev.dormouse.model.chat;

import java.util.List;

/** The variable {@code loop} in one round of a loop. */
record LoopState(List<Object> items, int index) {
    Object attribute(String name) {
        int size = items.size();
        return switch (name) {
            case "index" -> index + 1L;
            case "index0" -> (long) index;
            case "revindex" -> (long) size - index;
            case "revindex0" -> size - index - 1L;
            case "first" -> index == 0;
            case "last" -> index == size - 1;
            case "length" -> (long) size;
            case "previtem" -> index > 0 ? items.get(index - 1) : PyOperators.missing(this, name);
            case "nextitem" ->
                    index < size - 1 ? items.get(index + 1) : PyOperators.missing(this, name);
            case "cycle" -> (PyFunction) this::cycle;
            default -> PyOperators.missing(this, name);
        };
    }

    private Object cycle(CallArguments arguments) {
        List<Object> values = arguments.positional();
        if (values.isEmpty()) {
            throw arguments.failure("needs values");
        }
        return values.get(index % values.size());
    }
}
