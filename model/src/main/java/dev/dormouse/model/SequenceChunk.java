package dev.dormouse.model;

/**
 * The next tokens of one sequence, to be computed in one step: a prefill chunk, or the single token
 * of a decode step.
 *
 * <p>Token {@code i} has position {@code start + i}; the K and V of positions below {@code start}
 * are in the cache already. Position {@code p} lives in block {@code blocks[p / blockTokens]} at
 * slot {@code p % blockTokens}. The arrays are not copied; the caller leaves them alone during the
 * step.
 *
 * @param tokens the tokens to compute, at least one
 * @param start the position of {@code tokens[0]}
 * @param blocks the sequence's block table, covering at least {@code start + tokens.length}
 *     positions
 * @param logitRows how many of the last tokens need logits, 0 for a prefill chunk that is not the
 *     last
 */
@SuppressWarnings(
        "ArrayRecordComponent") // read-only views of the scheduler's own arrays, on the hot path
public record SequenceChunk(int[] tokens, int start, int[] blocks, int logitRows) {
    /** Checks the ranges that do not need the cache's shape. */
    public SequenceChunk {
        if (tokens.length == 0 || start < 0 || logitRows < 0 || logitRows > tokens.length) {
            throw new IllegalArgumentException(
                    "sequence chunk: tokens="
                            + tokens.length
                            + " start="
                            + start
                            + " logitRows="
                            + logitRows
                            + "; needs at least one token, start >= 0 and 0 <= logitRows <= tokens");
        }
    }
}
