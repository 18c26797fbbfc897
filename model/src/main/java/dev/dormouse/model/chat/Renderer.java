package dev.dormouse.model.chat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Runs a template once. Used by one thread. */
final class Renderer {
    private enum Flow {
        NEXT,
        BREAK,
        CONTINUE
    }

    private static final int MAX_RANGE = 100_000;

    private final Budget budget = new Budget();
    private final Evaluator evaluator = new Evaluator(budget);

    private Renderer() {}

    /**
     * Renders.
     *
     * @param variables what the template sees, in this package's value types
     * @throws ChatTemplateException when the template fails, raises, or exceeds a limit
     */
    static String render(List<Statement> template, Map<String, Object> variables) {
        Renderer renderer = new Renderer();
        Scope globals = new Scope(null);
        renderer.defineFunctions(globals);
        variables.forEach(globals::set);
        StringBuilder out = new StringBuilder();
        renderer.run(template, new Scope(globals), out);
        return out.toString();
    }

    private void defineFunctions(Scope globals) {
        globals.set("namespace", (PyFunction) a -> new PyNamespace(fields(a)));
        globals.set("dict", (PyFunction) a -> new PyDict(new LinkedHashMap<>(fields(a))));
        globals.set("range", (PyFunction) this::range);
        globals.set(
                "raise_exception",
                (PyFunction)
                        a -> {
                            String message = PyText.str(a.require(0, "message"), budget);
                            throw ChatTemplateException.raised(message);
                        });
    }

    /** The fields that {@code namespace} or {@code dict} gets, by name or from a dict. */
    private static Map<String, Object> fields(CallArguments arguments) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (Object value : arguments.positional()) {
            if (!(value instanceof PyDict dict)) {
                throw arguments.failure("needs a dict");
            }
            dict.entries().forEach((key, field) -> fields.put(String.valueOf(key), field));
        }
        fields.putAll(arguments.named());
        return fields;
    }

    private Object range(CallArguments arguments) {
        arguments.accept("start", "stop", "step");
        boolean single = arguments.positional().size() < 2;
        long start = single ? 0 : arguments.integer(0, "start", 0);
        long stop = single ? arguments.integer(0, "start", 0) : arguments.integer(1, "stop", 0);
        long step = arguments.integer(2, "step", 1);
        if (step == 0) {
            throw arguments.failure("needs a step other than 0");
        }
        List<Object> items = new ArrayList<>();
        long next = start;
        while (step > 0 ? next < stop : next > stop) {
            if (items.size() == MAX_RANGE) {
                throw arguments.failure("exceeds the limit of " + MAX_RANGE + " items");
            }
            items.add(next);
            // What leaves 64 bits is beyond any stop.
            boolean last = step > 0 ? next > Long.MAX_VALUE - step : next < Long.MIN_VALUE - step;
            next = last ? stop : next + step;
        }
        budget.steps(items.size());
        return PyList.list(items);
    }

    private Flow run(List<Statement> statements, Scope scope, StringBuilder out) {
        for (Statement statement : statements) {
            budget.enter();
            Flow flow = run(statement, scope, out);
            budget.leave();
            if (flow != Flow.NEXT) {
                return flow;
            }
        }
        return Flow.NEXT;
    }

    private Flow run(Statement statement, Scope scope, StringBuilder out) {
        return switch (statement) {
            case Statement.Text(String text) -> {
                append(text, out);
                yield Flow.NEXT;
            }
            case Statement.Output(Expression value) -> {
                append(PyText.str(evaluator.evaluate(value, scope), budget), out);
                yield Flow.NEXT;
            }
            case Statement.If choice -> {
                for (Statement.Branch branch : choice.branches()) {
                    if (evaluator.isTrue(branch.condition(), scope)) {
                        yield run(branch.body(), scope, out);
                    }
                }
                yield run(choice.otherwise(), scope, out);
            }
            case Statement.For loop -> {
                loop(loop, scope, out);
                yield Flow.NEXT;
            }
            case Statement.Assign(Statement.Target target, Expression value) -> {
                assign(target, evaluator.evaluate(value, scope), scope);
                yield Flow.NEXT;
            }
            case Statement.AssignBlock block -> {
                assign(block.target(), body(block.body(), block.filters(), scope), scope);
                yield Flow.NEXT;
            }
            case Statement.FilterBlock block -> {
                Object value = body(block.body(), block.filters(), scope);
                append(PyText.str(value, budget), out);
                yield Flow.NEXT;
            }
            case Statement.Macro macro -> {
                scope.set(macro.name(), (PyFunction) a -> callMacro(macro, a, scope));
                yield Flow.NEXT;
            }
            case Statement.Break b -> Flow.BREAK;
            case Statement.Continue c -> Flow.CONTINUE;
        };
    }

    private void append(String text, StringBuilder out) {
        budget.spend(text.length());
        out.append(text);
    }

    private Object body(
            List<Statement> statements, List<Statement.FilterCall> filters, Scope scope) {
        StringBuilder text = new StringBuilder();
        run(statements, new Scope(scope), text);
        Object value = text.toString();
        for (Statement.FilterCall filter : filters) {
            value = evaluator.filter(value, filter.name(), filter.arguments(), scope);
        }
        return value;
    }

    private void loop(Statement.For loop, Scope scope, StringBuilder out) {
        List<Object> items =
                PyOperators.iterate(evaluator.evaluate(loop.iterable(), scope), budget);
        if (loop.filter() != null) {
            List<Object> kept = new ArrayList<>();
            for (Object item : items) {
                Scope inner = new Scope(scope);
                assign(loop.target(), item, inner);
                if (evaluator.isTrue(loop.filter(), inner)) {
                    kept.add(item);
                }
            }
            items = kept;
        }
        for (int i = 0; i < items.size(); i++) {
            budget.step();
            Scope inner = new Scope(scope);
            inner.set("loop", new LoopState(items, i));
            assign(loop.target(), items.get(i), inner);
            if (run(loop.body(), inner, out) == Flow.BREAK) {
                break;
            }
        }
        if (items.isEmpty()) {
            run(loop.otherwise(), new Scope(scope), out);
        }
    }

    private void assign(Statement.Target target, Object value, Scope scope) {
        switch (target) {
            case Statement.Variable(String name) -> scope.set(name, value);
            case Statement.NamespaceField(String name, String field) -> {
                if (!(scope.get(name) instanceof PyNamespace namespace)) {
                    throw ChatTemplateException.failed(
                            "render chat template: set %s.%s: '%s' is no namespace"
                                    .formatted(name, field, name));
                }
                namespace.fields().put(field, value);
            }
            case Statement.Unpack(List<Statement.Target> targets) -> {
                List<Object> values = PyOperators.iterate(value, budget);
                if (values.size() != targets.size()) {
                    throw ChatTemplateException.failed(
                            "render chat template: %d values do not unpack into %d names"
                                    .formatted(values.size(), targets.size()));
                }
                for (int i = 0; i < targets.size(); i++) {
                    assign(targets.get(i), values.get(i), scope);
                }
            }
        }
    }

    private Object callMacro(Statement.Macro macro, CallArguments arguments, Scope definition) {
        arguments.accept(
                macro.parameters().stream().map(Statement.Parameter::name).toArray(String[]::new));
        Scope inner = new Scope(definition);
        for (int i = 0; i < macro.parameters().size(); i++) {
            Statement.Parameter parameter = macro.parameters().get(i);
            @Nullable Object given = arguments.find(i, parameter.name());
            if (given == null) {
                given =
                        parameter.fallback() != null
                                ? evaluator.evaluate(parameter.fallback(), inner)
                                : new PyUndefined("'" + parameter.name() + "' is undefined");
            }
            inner.set(parameter.name(), given);
        }
        StringBuilder out = new StringBuilder();
        run(macro.body(), inner, out);
        return out.toString();
    }
}
