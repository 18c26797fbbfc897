package dev.dormouse.engine.output;

/** Turns one sequence's tokens into text, holding back what is not a whole character yet. */
public interface TextDecoder {
    /** The text that became complete with this token; may be empty. */
    String push(int tokenId);

    /** What was held back, as it stands. */
    String finish();
}
