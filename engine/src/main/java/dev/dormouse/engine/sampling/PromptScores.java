package dev.dormouse.engine.sampling;

import dev.dormouse.engine.GenerationEvent.PromptToken;
import dev.dormouse.model.Logits;
import java.util.ArrayList;
import java.util.List;

/**
 * Collects the log probabilities of one prompt, chunk by chunk. A sequence that lost its blocks
 * computes its prompt again; what is known by then is not asked for a second time.
 */
public final class PromptScores {
    private final List<Integer> prompt;
    private final int top;
    private final List<PromptToken> scores = new ArrayList<>();

    /**
     * For a prompt of which nothing is computed.
     *
     * @param top likely tokens to report per token
     */
    public PromptScores(List<Integer> prompt, int top) {
        this.prompt = prompt;
        this.top = top;
    }

    /** Leading positions whose rows have been seen; each position's row is about the next token. */
    public int positions() {
        return scores.size();
    }

    /** True once every token that has a predecessor is scored. */
    public boolean isComplete() {
        return scores.size() >= prompt.size() - 1;
    }

    /** All scores, if complete. */
    public List<PromptToken> scores() {
        return List.copyOf(scores);
    }

    /**
     * Takes the rows of a chunk.
     *
     * @param firstRow the row of the chunk's first position
     * @param start that position
     * @param count positions of the chunk, each with a row
     */
    public void add(Logits logits, int firstRow, int start, int count) {
        for (int position = start; position < start + count && !isComplete(); position++) {
            if (position == scores.size()) {
                int from = logits.offset(firstRow + position - start);
                scores.add(
                        Logprobs.known(
                                logits.values(),
                                from,
                                from + logits.vocabularySize(),
                                prompt.get(position + 1),
                                top));
            }
        }
    }
}
