package dev.dormouse.engine.core;

import dev.dormouse.model.SequenceChunk;
import java.util.List;

/**
 * What one step computes.
 *
 * @param parts one per sequence
 */
record Batch(List<Part> parts) {
    /** Nothing to compute. */
    static final Batch EMPTY = new Batch(List.of());

    /**
     * A sequence's share.
     *
     * @param tokens how many of its uncomputed tokens
     * @param logitRows rows of logits that they give
     */
    record Part(Sequence sequence, int tokens, int logitRows) {
        Part(Sequence sequence, int tokens) {
            this(sequence, tokens, sequence.logitRows(tokens));
        }
    }

    Batch {
        parts = List.copyOf(parts);
    }

    boolean isEmpty() {
        return parts.isEmpty();
    }

    /** The batch as the model sees it. */
    List<SequenceChunk> chunks() {
        return parts.stream().map(part -> part.sequence().chunk(part.tokens())).toList();
    }
}
