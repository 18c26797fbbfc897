package dev.dormouse.model.chat;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** What a template does. */
sealed interface Statement {
    record Text(String text) implements Statement {}

    record Output(Expression value) implements Statement {}

    record Branch(Expression condition, List<Statement> body) {}

    record If(List<Branch> branches, List<Statement> otherwise) implements Statement {}

    record For(
            Target target,
            Expression iterable,
            @Nullable Expression filter,
            List<Statement> body,
            List<Statement> otherwise)
            implements Statement {}

    record Assign(Target target, Expression value) implements Statement {}

    /** A filter without its input, which is the rendered body. */
    record FilterCall(String name, Expression.Arguments arguments) {}

    record AssignBlock(Target target, List<FilterCall> filters, List<Statement> body)
            implements Statement {}

    record FilterBlock(List<FilterCall> filters, List<Statement> body) implements Statement {}

    record Parameter(String name, @Nullable Expression fallback) {}

    record Macro(String name, List<Parameter> parameters, List<Statement> body)
            implements Statement {}

    record Break() implements Statement {}

    record Continue() implements Statement {}

    /** Where a value goes. */
    sealed interface Target {}

    record Variable(String name) implements Target {}

    record Unpack(List<Target> targets) implements Target {}

    record NamespaceField(String namespace, String field) implements Target {}
}
