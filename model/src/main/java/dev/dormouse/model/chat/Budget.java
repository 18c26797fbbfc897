package dev.dormouse.model.chat;

/** What one rendering may cost: a template comes with a model file and may be hostile. */
final class Budget {
    /** In characters made; far above what real templates need, and about a second's work. */
    private static final long MAX_COST = 64L << 20;

    /** A step takes as long as making some ten characters, and may leave objects behind. */
    private static final int STEP_COST = 64;

    /** Nested evaluations, macro calls among them; each takes a few Java frames. */
    private static final int MAX_DEPTH = 200;

    private long spent;
    private int depth;

    /** Pays for making that many characters. */
    void spend(long characters) {
        spent += characters;
        if (spent > MAX_COST || spent < 0) {
            throw ChatTemplateException.failed(
                    "render chat template: it does more work than the limit of " + MAX_COST);
        }
    }

    /** Pays for visiting one value. */
    void step() {
        spend(STEP_COST);
    }

    /** Pays for that many list items. */
    void steps(long count) {
        // A list longer than that exceeds the limit anyway; this keeps the product in range.
        spend(Math.min(count, MAX_COST) * STEP_COST);
    }

    /** Pays for a step that may contain others. */
    void enter() {
        step();
        if (++depth > MAX_DEPTH) {
            throw ChatTemplateException.failed(
                    "render chat template: it nests deeper than the limit of " + MAX_DEPTH);
        }
    }

    void leave() {
        depth--;
    }
}
