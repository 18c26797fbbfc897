package dev.dormouse.engine.core;

/**
 * What one step may still compute: tokens, and rows of logits of prompts. A row is as long as the
 * vocabulary, and the model keeps the room for the largest step, so rows are bounded on their own.
 */
final class StepBudget {
    private static final int MAX_PROMPT_ROWS = 64;

    private int tokens;
    private int promptRows = MAX_PROMPT_ROWS;

    StepBudget(int tokens) {
        this.tokens = tokens;
    }

    boolean isSpent() {
        return tokens == 0;
    }

    /** True if the sequence would get at least one token. */
    boolean hasRoomFor(Sequence sequence) {
        return tokens > 0 && (!sequence.scoresPrompt() || promptRows > 0);
    }

    /**
     * Takes what is left, but no more than the sequence has to compute; answers how many tokens.
     */
    int take(Sequence sequence) {
        int taken = Math.min(sequence.uncomputed(), tokens);
        if (sequence.scoresPrompt()) {
            taken = Math.min(taken, promptRows);
            promptRows -= taken;
        }
        tokens -= taken;
        return taken;
    }
}
