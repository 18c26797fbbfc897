package dev.dormouse.server;

/** A part of what a choice says. */
sealed interface Part {
    /** Text for the reader. */
    record Text(String text) implements Part {}

    /**
     * A call of a tool.
     *
     * @param index its place among the choice's calls
     * @param name the tool
     * @param arguments a JSON object as text
     */
    record Call(int index, String name, String arguments) implements Part {}
}
