package dev.dormouse.server;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/**
 * Finds calls of tools as the models of the Hermes family write them: {@code <tool_call>}, a JSON
 * object with {@code name} and {@code arguments}, {@code </tool_call>}. What is no such call stays
 * text.
 */
final class ToolCallPieces implements Pieces {
    /** What begins a call; a chat template that explains calls to its model has it, too. */
    static final String BEGIN = "<tool_call>";

    private static final String END = "</tool_call>";

    private final int maxCalls;
    private final StringBuilder held = new StringBuilder();
    private boolean inCall;
    private boolean behindCall;
    private int calls;

    /** {@code maxCalls} calls count; further ones are left out. */
    ToolCallPieces(int maxCalls) {
        this.maxCalls = maxCalls;
    }

    @Override
    public List<Part> push(String text) {
        held.append(text);
        List<Part> parts = new ArrayList<>();
        while (true) {
            String mark = inCall ? END : BEGIN;
            int at = held.indexOf(mark);
            if (at < 0) {
                if (!inCall) {
                    addText(parts, take(held.length() - openLength()));
                }
                return parts;
            }
            String before = take(at);
            take(mark.length());
            if (!inCall) {
                addText(parts, before);
            } else if (!addCall(parts, before)) {
                addText(parts, BEGIN + before + END);
            }
            inCall = !inCall;
        }
    }

    /** As in vLLM, a call whose end is missing counts if it is complete otherwise. */
    @Override
    public List<Part> finish() {
        List<Part> parts = new ArrayList<>();
        String rest = take(held.length());
        if (!inCall) {
            addText(parts, rest);
        } else if (!addCall(parts, rest)) {
            addText(parts, BEGIN + rest);
        }
        inCall = false;
        return parts;
    }

    /** Space behind a call says nothing. */
    private void addText(List<Part> parts, String text) {
        String said = behindCall ? text.stripLeading() : text;
        if (!said.isEmpty()) {
            behindCall = false;
            parts.add(new Part.Text(said));
        }
    }

    private boolean addCall(List<Part> parts, String text) {
        JsonNode json = RequestBody.tryJson(text);
        JsonNode arguments = json.path("arguments");
        if (!json.path("name").isTextual() || !(arguments.isObject() || arguments.isTextual())) {
            return false;
        }
        behindCall = true;
        if (calls < maxCalls) {
            parts.add(
                    new Part.Call(
                            calls++,
                            json.path("name").textValue(),
                            arguments.isTextual() ? arguments.textValue() : arguments.toString()));
        }
        return true;
    }

    private String take(int length) {
        String text = held.substring(0, length);
        held.delete(0, length);
        return text;
    }

    /** The length of the longest end of the text that may begin a call. */
    private int openLength() {
        int length = Math.min(BEGIN.length() - 1, held.length());
        while (!BEGIN.startsWith(held.substring(held.length() - length))) {
            length--;
        }
        return length;
    }
}
