package dev.dormouse.model.chat;

/** What one rendering may cost: a template comes with a model file and may be hostile. */
final class Budget {
    /** Steps taken plus characters and elements made, far above what real templates need. */
    private static final long MAX_COST = 64L << 20;

    /** Nested evaluations, macro calls among them; each takes a few Java frames. */
    private static final int MAX_DEPTH = 200;

    private long spent;
    private int depth;

    void spend(long cost) {
        spent += cost;
        if (spent > MAX_COST || spent < 0) {
            throw ChatTemplateException.failed(
                    "render chat template: it does more work than the limit of " + MAX_COST);
        }
    }

    void enter() {
        spend(1);
        if (++depth > MAX_DEPTH) {
            throw ChatTemplateException.failed(
                    "render chat template: it nests deeper than the limit of " + MAX_DEPTH);
        }
    }

    void leave() {
        depth--;
    }
}
