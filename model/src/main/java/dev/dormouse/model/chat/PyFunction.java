package dev.dormouse.model.chat;

/** Something that a template can call. */
@FunctionalInterface
interface PyFunction {
    Object call(CallArguments arguments);
}
